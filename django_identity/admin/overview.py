"""The overview page: what needs an operator, as the doctor finds it in the rows, and two charts."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.contrib import admin
from django.core.cache import cache
from django.core.exceptions import PermissionDenied
from django.db.models import Model
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import path, reverse
from django.utils import timezone
from django.utils.translation import get_language
from django.utils.translation import gettext_lazy as _

from django_identity import conf
from django_identity.admin.listing import RecordAdmin
from django_identity.instruments.signs import Finding, Severity, charts, of_rows
from django_identity.models import Consent, Overview
from django_identity.models.querysets import MOST_COUNTED
from django_identity.texts.labels import in_words
from django_identity.texts.operators import Words

CACHE_KEY = "django_identity.overview.6"
KEPT_SECONDS = 60
#: The list that has the rows of a finding.
LISTS = {
    "refetches": "linkedidentity_changelist?failing=yes",
    "failing": "linkedidentity_changelist?failing=yes",
    "grants": "linkedidentity_changelist?lost=yes",
    "events": "webhookevent_changelist?outcome__exact=failed",
    "erasures": "erasurereceipt_changelist?state=pending",
}


@dataclass(frozen=True, slots=True)
class Seen:
    """What was seen, for all operators who have the page open."""

    at: datetime
    findings: list[Finding]
    people: list[tuple[Consent, str, int]]
    days: list[charts.Day]

    @property
    def is_healthy(self) -> bool:
        return all(finding.level is not Severity.PROBLEM for finding in self.findings)


def look() -> Seen:
    return Seen(
        at=timezone.now(),
        findings=list(of_rows()),
        people=charts.people(),
        days=charts.days(),
    )


@admin.register(Overview)
class OverviewAdmin(RecordAdmin):
    """An entry of the admin's index that leads to one page, for whoever may see identities."""

    def has_view_permission(
        self,
        request: HttpRequest,
        obj: Model | None = None,
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
        # Remedies are in the operator's language.
        key = f"{CACHE_KEY}.{get_language()}"
        seen: Any = cache.get_or_set(key, look, KEPT_SECONDS)
        context = self.context(
            request,
            _("Overview"),
            seen=seen,
            application=conf.application(),
            findings=[(each, self.list_of(each)) for each in seen.findings],
            people=[(_state(*state), count) for *state, count in seen.people],
            most=max(count for *_state, count in seen.people),
            most_counted=MOST_COUNTED,
            most_a_day=max(max(day.linked, day.revoked) for day in seen.days),
        )
        return TemplateResponse(request, "admin/django_identity/overview.html", context)

    def list_of(self, finding: Finding) -> str:
        """The address of the list, or an empty text."""
        name, _mark, query = LISTS.get(finding.check, "").partition("?")
        if not name:
            return ""
        address = reverse(
            f"admin:django_identity_{name}",
            current_app=self.admin_site.name,
        )
        return f"{address}?{query}"


def _state(consent: Consent, status: str) -> Words:
    if consent == Consent.REVOKED:
        return consent.label
    none = _("no KYC level")
    return f"{consent.label} · {in_words(status) or none}"
