"""The admin of linked identities."""

from collections.abc import Iterator
from typing import Any

from django.contrib import admin
from django.contrib.auth import get_user_model
from django.contrib.auth.models import AbstractBaseUser
from django.db.models import QuerySet, Value
from django.http import HttpRequest
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from django_identity import database
from django_identity.admin import filters
from django_identity.admin.actions import IdentityActions
from django_identity.exceptions.table import ERRORS
from django_identity.gates.closed import Closed
from django_identity.gates.gate import Gate, missing_to
from django_identity.instruments import gate_map
from django_identity.lifecycle.operators import timeline
from django_identity.lifecycle.standing.standing import standing_of
from django_identity.models import LinkedIdentity, TokenGrant
from django_identity.texts import operators as wording
from django_identity.texts.labels import in_words


@admin.register(LinkedIdentity)
class LinkedIdentityAdmin(IdentityActions):
    """The list, and a page with all facts about one identity."""

    list_display = (
        "person",
        "short_subject",
        "state",
        "kyc",
        "freshness",
        "refetch_due",
    )
    list_filter = (
        "environment",
        "consent",
        filters.KYC_LEVEL,
        filters.KYC_STATUS,
        filters.FRESHNESS,
        filters.FAILING,
        filters.LOST,
        "created_at",
    )
    change_list_template = "admin/django_identity/linkedidentity/change_list.html"
    search_fields = ("^subject",)
    search_words = _(
        "The beginning of a user name, an e-mail address or a subject; "
        "or a whole reference number.",
    )
    fields = ("environment",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[LinkedIdentity]:
        """Tell each row what the operator may see, because a column has no request."""
        identities = super().get_queryset(request).select_related("user")
        may_see = Value(self.may_see_people(request))
        shown: QuerySet[LinkedIdentity] = identities.annotate(may_see=may_see)
        return shown

    def get_search_fields(self, request: HttpRequest) -> tuple[str, ...]:
        """Whoever may not see users finds none: even a match would tell something about one."""
        if not self.may_see_people(request):
            return self.search_fields
        model = get_user_model()
        known = database.field_names(model)
        names = known.intersection([model.USERNAME_FIELD, model.get_email_field_name()])
        # A closed gate tells the person the key as a reference (``Shortfall.reference``).
        of_people = (f"^user__{name}" for name in sorted(names))
        return (*self.search_fields, "=pk", *of_people)

    def facts_of(self, row: LinkedIdentity, request: HttpRequest) -> dict[str, Any]:
        email = ""
        if self.may_see_people(request):
            email = database.email_of(row.user)
        grants = TokenGrant.objects.defer("access_token", "refresh_token")
        grant = grants.filter(identity=row).first()
        gates = list(_gates_before(row.user))
        asked = [missing for gate, missing, _urls in gates if not gate.asks_of_session]
        line = timeline.timeline_of(row)
        return {
            "gates": gates,
            "open_gates": asked.count(None),
            "asked_gates": len(asked),
            "claims": [entry.claim for entry in line if entry.claim],
            "grant": grant,
            # Without a live grant only the person's sign-in helps.
            "can_refetch": grant is not None and not grant.needs_reauthorization,
            "refetch_due": self.refetch_due(row),
            "timeline": line,
            "disabled": ERRORS["user_inactive"].sentence,
            "email": email,
            "user_opts": row.user._meta,
            "title": self.name_of(request, row),
        }

    @admin.display(description=_("person"))
    def person(self, identity: LinkedIdentity) -> str:
        may_see = getattr(identity, "may_see", False)
        return wording.person_name(identity.user, may_see=may_see)

    @admin.display(description=_("consent"))
    def state(self, identity: LinkedIdentity) -> str:
        return identity.get_consent_display()

    @admin.display(description=_("KYC"))
    def kyc(self, identity: LinkedIdentity) -> SafeString:
        words = (identity.kyc_level, in_words(identity.kyc_status))
        parts = [(word,) for word in words if word]
        return format_html_join(" ", '<bdi class="identity-word">{}</bdi>', parts)

    @admin.display(description=_("credential"))
    def freshness(self, identity: LinkedIdentity) -> str | None:
        return wording.validity(identity.credential_expires_at) or None

    @admin.display(description=_("re-fetch due"))
    def refetch_due(self, identity: LinkedIdentity) -> SafeString | str:
        due = wording.due(identity.refetch_due_at)
        count = identity.refetch_failures
        if not count:
            return due
        failed = ngettext("failed %d time", "failed %d times", count) % count
        return format_html("{} {}", due, wording.warning_badge(failed))


def _gates_before(
    user: AbstractBaseUser,
) -> Iterator[tuple[Gate, Closed | None, list[str]]]:
    """Each gate as the person meets it, whose account may be disabled, and the URLs behind it."""
    for gate, urls in gate_map.guarded():
        missing: Closed | None = Closed(gate.requirements[0], shortfall=None)
        if user.is_active:
            missing = missing_to(gate, standing_of(user))
        yield gate, missing, urls
