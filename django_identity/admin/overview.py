"""The overview page: whether an application is healthy, what is not, and its figures."""

from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import path
from django.utils.translation import gettext_lazy as _

from django_identity import conf
from django_identity.admin.charts import Chart, bars, columns
from django_identity.admin.listing import RecordAdmin
from django_identity.lifecycle import operators
from django_identity.models import Consent
from django_identity.texts import operators as wording
from django_identity.texts.operators import Words

LIVES: dict[str, Words] = {
    "24h": _("more than 12 h left"),
    "12h": _("6 to 12 h left"),
    "6h": _("1 to 6 h left"),
    "1h": _("less than 1 h left"),
    "ran_out": _("ran out"),
    "none": _("no credential"),
}


class OverviewPage(RecordAdmin):
    """The page beside the list of identities."""

    change_list_template = "admin/django_identity/linkedidentity/change_list.html"

    def get_urls(self) -> list[Any]:
        view = self.admin_site.admin_view(self.overview)
        return [path("overview/", view, name="django_identity_overview"), *super().get_urls()]

    def overview(self, request: HttpRequest) -> HttpResponse:
        """The page of the application in ``?of=``, by default the first one."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        known = conf.aliases()
        asked = request.GET.get("of", "")
        alias = asked if asked in known else known[0]
        environment = conf.application(alias).environment
        seen = operators.figures_of(alias, environment)
        context = self.context(
            request,
            _("Overview"),
            aliases=known,
            badge=wording.environment_badge(environment),
            alias=alias,
            seen=seen,
            charts=_charts(seen),
            attention=operators.attention_of(alias, environment),
        )
        return TemplateResponse(request, "admin/django_identity/overview.html", context)


def _charts(seen: operators.Figures) -> list[Chart]:
    day = _("Days are in UTC.")
    lives = [(words, seen.by_life.get(span, 0)) for span, words in LIVES.items()]
    names, none = dict(Consent.choices), _("no KYC level")
    by_consent = sorted(seen.by_consent.items(), key=lambda item: (item[0][0], -item[1]))
    consents: list[tuple[Words, int]] = [
        (f"{names.get(consent, consent)} · {wording.level_name(level) or none}", count)
        for (consent, level), count in by_consent
    ]
    return [
        bars("consent", _("Identities by consent and KYC level"), consents),
        bars("life", _("Credentials by remaining life"), lives),
        columns("linked", _("People linked a day"), seen.linked, note=day),
        columns("received", _("Events a day"), seen.received, note=day),
    ]
