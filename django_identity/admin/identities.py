"""The admin of linked identities."""

from typing import Any

from django.contrib import admin
from django.contrib.admin.utils import unquote
from django.contrib.admin.views.main import ChangeList
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from django_identity.admin import filters, wording
from django_identity.admin.actions import IdentityActions
from django_identity.admin.listing import InOneDirection
from django_identity.lifecycle import operators
from django_identity.models import Consent, LinkedIdentity


class IdentityList(InOneDirection):
    """The list of identities. Without consent none has a due date, so that order is by age."""

    def get_ordering(self, request: HttpRequest, queryset: QuerySet[Any]) -> list[Any]:
        # PostgreSQL would look for these rows behind all that have a date.
        if self.params.get("consent__exact") == Consent.REVOKED:
            return ["-pk"]
        return super().get_ordering(request, queryset)


@admin.register(LinkedIdentity)
class LinkedIdentityAdmin(IdentityActions):
    """The list, and a page with all facts about one identity."""

    list_display = (
        "person", "short_subject", "where", "consent", "kyc", "freshness", "refetch_due",
    )  # fmt: skip
    list_filter = (
        filters.ApplicationFilter, "environment", "consent", filters.KycLevelFilter,
        filters.KycStatusFilter, filters.FreshnessFilter, filters.FailingFilter,
        filters.GrantFilter, ("created_at", filters.DateFilter),
    )  # fmt: skip
    search_fields = ("subject",)
    search_words = _("The beginning of a user name, an e-mail address or a subject.")
    sortable_by = ("refetch_due",)
    fields = ("application",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[LinkedIdentity]:
        return super().get_queryset(request).select_related("user").defer("credential")

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        return IdentityList

    def get_list_display(self, request: HttpRequest) -> tuple[str, ...]:
        first = "person" if self.may_see_people(request) else "masked_person"
        return first, *self.list_display[1:]

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[LinkedIdentity], search_term: str
    ) -> tuple[QuerySet[LinkedIdentity], bool]:
        may_see = self.may_see_people(request)
        return operators.find_identities(queryset, search_term, may_see_people=may_see), False

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        identity, may_see = context["original"], self.may_see_people(request)
        email = wording.email_of(identity.user)
        context |= {
            "report": operators.report_on(identity),
            "allowed_actions": self.allowed_actions(request, identity),
            "may_see_people": may_see,
            "email": email if may_see else "",
            "user_url": self._user_url(request, identity),
            "title": wording.person_name(identity.user, may_see=may_see),
        }
        return super().render_change_form(request, context, *args, **kwargs)

    def history_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """What staff did to the identity, under the person's name."""
        identity = self.get_object(request, unquote(object_id))
        name = ""
        if identity is not None:
            name = wording.person_name(identity.user, may_see=self.may_see_people(request))
        context = {"title": _("Staff actions"), "person_name": name, **(extra_context or {})}
        return super().history_view(request, object_id, context)

    def _user_url(self, request: HttpRequest, identity: LinkedIdentity) -> str:
        """The admin page of the user, if there is one and the operator may see it."""
        opts = identity.user._meta
        if not self.admin_site.is_registered(type(identity.user)):
            return ""
        page = self.admin_site.get_model_admin(type(identity.user))
        if not page.has_view_permission(request, identity.user):
            return ""
        name = f"admin:{opts.app_label}_{opts.model_name}_change"
        return reverse(name, args=[identity.user_id], current_app=self.admin_site.name)

    @admin.display(description=_("person"))
    def person(self, identity: LinkedIdentity) -> str:
        return wording.person_name(identity.user, may_see=True)

    @admin.display(description=_("person"))
    def masked_person(self, identity: LinkedIdentity) -> str:
        return wording.person_name(identity.user, may_see=False)

    @admin.display(description=_("KYC"))
    def kyc(self, identity: LinkedIdentity) -> SafeString:
        level = wording.level_name(identity.kyc_level)
        stated = [(part,) for part in (level, wording.status_name(identity.kyc_status)) if part]
        return format_html_join(" ", '<bdi class="identity-word">{}</bdi>', stated)

    @admin.display(description=_("credential"))
    def freshness(self, identity: LinkedIdentity) -> SafeString:
        moment = identity.credential_expires_at
        words = wording.freshness(moment)
        return format_html('<span title="{}">{}</span>', wording.spelt(moment), words)

    @admin.display(description=_("re-fetch due"), ordering="refetch_due_at")
    def refetch_due(self, identity: LinkedIdentity) -> SafeString:
        due, count = wording.due(identity.refetch_due_at), identity.refetch_failures
        if not count:
            return format_html("{}", due)
        badge = '{} <span class="identity-badge identity-closed">{}</span>'
        return format_html(badge, due, ngettext("failed %d time", "failed %d times", count) % count)
