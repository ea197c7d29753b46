"""The overview page: figures of an application, and what needs attention."""

from typing import Any

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import path
from django.utils import formats
from django.utils.translation import gettext_lazy as _

from django_identity import conf
from django_identity.admin import wording
from django_identity.admin.charts import Chart, bars, columns
from django_identity.admin.listing import RecordAdmin, with_visible_controls
from django_identity.admin.wording import Words
from django_identity.lifecycle.operators import NEWEST_EVENTS, ApplicationFigures, overview_of
from django_identity.models import Consent, EventOutcome, Overview

# The bounds of ``lifecycle.operators.overview``.
MOST_COUNTED, SAMPLED = 100_000, 20_000
MOST_REASONS = 8

LIVES: dict[str, Words] = {
    "24h": _("more than 12 h left"),
    "12h": _("6 to 12 h left"),
    "6h": _("1 to 6 h left"),
    "1h": _("less than 1 h left"),
    "ran_out": _("ran out"),
    "none": _("no credential"),
}


@admin.register(Overview)
class OverviewAdmin(RecordAdmin):
    """The entry in the admin's index. It has no list, only the overview page."""

    def get_urls(self) -> list[Any]:
        view = with_visible_controls(self.admin_site.admin_view(self.overview))
        return [path("", view, name="django_identity_overview_changelist")]

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return request.user.has_perm("django_identity.view_linkedidentity")

    def has_module_permission(self, request: HttpRequest) -> bool:
        return self.has_view_permission(request)

    def overview(self, request: HttpRequest) -> HttpResponse:
        """The page of the application in ``?of=``, by default the first one."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        known = conf.aliases()
        asked = request.GET.get("of", "")
        alias = asked if asked in known else known[0]
        environment = conf.application(alias).environment
        seen = overview_of(application=alias, environment=environment)
        context = self.context(
            request,
            _("Overview"),
            aliases=known,
            badge=wording.environment_badge(environment),
            alias=alias,
            seen=seen,
            most=_group_digits(MOST_COUNTED),
            sampled=_group_digits(SAMPLED),
            charts=_charts(seen),
            attention=seen.attention,
        )
        return TemplateResponse(request, "admin/django_identity/overview.html", context)


def _charts(seen: ApplicationFigures) -> list[Chart]:
    sampled = {"count": _group_digits(SAMPLED)}
    estimate = _("An estimate from %(count)s identities.") % sampled if seen.is_sampled else ""
    newest = _("Of the newest %(count)s events.") % {"count": _group_digits(NEWEST_EVENTS)}
    day = _("Days are in UTC.")
    lives = [(words, seen.by_life.get(span, 0)) for span, words in LIVES.items()]
    events = [(label, seen.events.get(value, 0)) for value, label in EventOutcome.choices]
    most = sorted(seen.failures.items(), key=lambda item: -item[1])[:MOST_REASONS]
    failures = [(code or _("no code"), count) for code, count in most]
    return [
        bars("consent", _("Identities by consent and KYC level"), _consents(seen), note=estimate),
        bars("life", _("Credentials by remaining life"), lives, note=estimate),
        columns("sign-ins", _("Sign-ins a day"), seen.sign_ins, note=day),
        columns("refetches", _("Re-fetches a day"), seen.refetches, note=day),
        columns("failed", _("Failed re-fetches a day"), seen.failed_refetches, note=day),
        bars("events", _("Events by outcome"), events, note=newest),
        bars("failures", _("Identities whose re-fetch fails, by reason"), failures),
        columns(
            "conflicts", _("Refused events with a known id a day"), seen.event_conflicts, note=day
        ),
    ]


def _group_digits(number: int) -> str:
    """The number with the separators of the operator's language."""
    return str(formats.number_format(number, use_l10n=True, force_grouping=True))


def _consents(seen: ApplicationFigures) -> list[tuple[Words, int]]:
    names = dict(Consent.choices)
    ordered = sorted(seen.by_consent.items(), key=lambda item: (item[0][0], -item[1]))
    none = _("no KYC level")
    return [
        (f"{names.get(consent, consent)} · {wording.level_name(level) or none}", count)
        for (consent, level), count in ordered
    ]
