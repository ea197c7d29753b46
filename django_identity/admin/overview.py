"""The overview page: whether the site is healthy, what is not, and its figures."""

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any, NamedTuple

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db.models import Model
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import path
from django.utils import formats
from django.utils.translation import gettext_lazy as _

from django_identity.admin.listing import RecordAdmin
from django_identity.lifecycle.operators.overview import Figures, current
from django_identity.models import Consent, Overview
from django_identity.texts.operators import Words

LIVES: dict[str, Words] = {
    "24h": _("more than 12 h left"),
    "12h": _("6 to 12 h left"),
    "6h": _("1 to 6 h left"),
    "1h": _("less than 1 h left"),
    "ran_out": _("ran out"),
    "none": _("no credential"),
}


class Chart(NamedTuple):
    """A title, and the label and number of each bar."""

    title: Words
    bars: Sequence[tuple[Words, int]]

    @property
    def highest(self) -> int:
        return max((count for _label, count in self.bars), default=0)


@admin.register(Overview)
class OverviewAdmin(RecordAdmin):
    """An entry of the admin's index that leads to one page, for whoever may see identities."""

    def has_view_permission(
        self, request: HttpRequest, obj: Model | None = None
    ) -> bool:
        return request.user.has_perm("django_identity.view_linkedidentity")

    def has_module_permission(self, request: HttpRequest) -> bool:
        return self.has_view_permission(request)

    def get_urls(self) -> list[Any]:
        view = self.admin_site.admin_view(self.changelist_view)
        return [path("", view, name="django_identity_overview_changelist")]

    def changelist_view(self, request: HttpRequest, *_given: Any) -> HttpResponse:
        if not self.has_view_permission(request):
            raise PermissionDenied
        seen = current()
        context = self.context(
            request,
            _("Overview"),
            seen=seen,
            identities=seen.figures.by_consent.total(),
            failures=seen.figures.failures.most_common(),
            charts=_charts(seen.figures),
        )
        return TemplateResponse(request, "admin/django_identity/overview.html", context)


def _charts(figures: Figures) -> list[Chart]:
    names = dict(Consent.choices)
    none = _("no KYC level")
    consents = [
        (f"{names.get(consent, consent)} · {level or none}", count)
        for (consent, level), count in figures.by_consent.most_common()
    ]
    lives = [(words, figures.by_life[span]) for span, words in LIVES.items()]
    return [
        Chart(_("Identities by consent and KYC level"), consents),
        Chart(_("Credentials by remaining life"), lives),
        Chart(_("People linked a day"), _days(figures.linked)),
        Chart(_("Events a day"), _days(figures.received)),
    ]


def _days(counts: Mapping[date, int]) -> list[tuple[str, int]]:
    return [
        (formats.date_format(day, "DATE_FORMAT"), count)
        for day, count in counts.items()
    ]
