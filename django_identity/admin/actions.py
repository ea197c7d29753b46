"""The actions on linked identities, each with its own permission. Final ones ask first."""

from functools import partialmethod
from urllib.parse import urlencode

from django.contrib import admin, messages
from django.contrib.admin.models import CHANGE, DELETION
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.translation import gettext, ngettext, ngettext_lazy
from django.utils.translation import gettext_lazy as _

from django_identity.admin.listing import FILTERS, RecordAdmin
from django_identity.exceptions.table import hint_of
from django_identity.lifecycle.leaving import erasure
from django_identity.lifecycle.operators import interventions
from django_identity.lifecycle.said import due
from django_identity.models import LinkedIdentity

MOST_REFETCHED = 1_000
MOST_CONFIRMED = 100
#: The words are Django's own, in its catalogues.
NOTHING_CHOSEN = (
    "Items must be selected in order to perform actions on them. "
    "No items have been changed."
)
Rows = QuerySet[LinkedIdentity]

ABOUT_ONE = {
    "revoke": _("Revoke %(person)s at this site?"),
    "disconnect": _("Disconnect %(person)s?"),
    "erase": _("Erase %(person)s?"),
}
ABOUT_SEVERAL = {
    "revoke": ngettext_lazy(
        "Revoke %(count)d identity at this site?",
        "Revoke %(count)d identities at this site?",
        "count",
    ),
    "disconnect": ngettext_lazy(
        "Disconnect %(count)d identity?",
        "Disconnect %(count)d identities?",
        "count",
    ),
}


class IdentityActions(RecordAdmin):
    """The actions of the list. The buttons on an identity's own page post to them too."""

    actions = ("refetch", "revoke", "disconnect", "erase")
    has_refetch_permission = partialmethod(RecordAdmin.may, verb="refetch")
    has_revoke_permission = partialmethod(RecordAdmin.may, verb="revoke")
    has_erase_permission = partialmethod(RecordAdmin.may, verb="erase")

    @admin.action(description=_("Re-fetch now"), permissions=["refetch"])
    def refetch(self, request: HttpRequest, queryset: Rows) -> HttpResponse | None:
        """Fetch one while the operator waits; make several due now."""
        newest = queryset.order_by("-pk")
        chosen = self.first_of(request, newest, most=MOST_REFETCHED)
        # Not that it was re-fetched: it may fail, or have no consent.
        self.note(request, chosen, CHANGE, gettext("Re-fetch now"))
        if len(chosen) != 1:
            number = due.make_all_due(chosen)
            messages.success(
                request,
                gettext("Re-fetches that are due now: %d") % number,
            )
            return None
        [identity] = chosen
        if code := interventions.refetch(identity):
            failed = gettext("The last re-fetch failed:")
            messages.error(request, f"{failed} {hint_of(code)}")
        else:
            messages.success(request, gettext("Re-fetched."))
        if FILTERS in request.POST:
            return redirect(self.page_of(request, identity))
        return None

    @admin.action(description=_("Revoke at this site"), permissions=["revoke"])
    def revoke(self, request: HttpRequest, queryset: Rows) -> HttpResponse | None:
        if question := self.question(request, queryset, "revoke"):
            return question
        chosen = list(queryset)
        revoked = interventions.revoke(chosen)
        text = ngettext(
            "%d identity was revoked.",
            "%d identities were revoked.",
            revoked,
        )
        messages.success(request, text % revoked)
        self.note(request, chosen, CHANGE, gettext("Revoked at this site."))
        return None

    @admin.action(description=_("Disconnect"), permissions=["revoke"])
    def disconnect(self, request: HttpRequest, queryset: Rows) -> HttpResponse | None:
        """Remove links. One that made its account stays, unless the owner has another way in."""
        if question := self.question(request, queryset, "disconnect"):
            return question
        chosen = list(queryset)
        kept = interventions.disconnect(chosen)
        removed = [identity for identity in chosen if identity not in kept]
        if removed:
            text = ngettext(
                "%d link was removed.",
                "%d links were removed.",
                len(removed),
            )
            messages.success(request, text % len(removed))
        text = gettext(
            "The link of %(person)s stays: it is the only way in to the account.",
        )
        for identity in kept:
            person = self.name_of(request, identity)
            messages.warning(request, text % {"person": person})
        self.note(request, removed, DELETION, gettext("Disconnected."))
        return None

    @admin.action(description=_("Erase"), permissions=["erase"])
    def erase(self, request: HttpRequest, queryset: Rows) -> HttpResponse | None:
        """Erase one person."""
        if question := self.question(request, queryset, "erase", most=1):
            return question
        identity = queryset.get()
        receipt = interventions.erase(identity)
        if receipt.erased_at is not None:
            self.note(request, [identity], DELETION, gettext("Erased."))
            text = gettext("The person was erased. A receipt was written.")
            messages.success(request, text)
        else:
            text = gettext(
                "The identity is revoked; the site's own part of the erasure is still pending.",
            )
            self.note(request, [identity], CHANGE, text)
            messages.warning(request, text)
        return None

    def question(
        self,
        request: HttpRequest,
        queryset: Rows,
        action: str,
        *,
        most: int = MOST_CONFIRMED,
    ) -> HttpResponse | None:
        """The confirmation page of the action, or None if the operator has confirmed it."""
        chosen = queryset.order_by("pk")[: most + 1]
        if not 0 < len(chosen) <= most:
            refusal = gettext("Choose %d identities at most.") % most
            if not chosen:
                # They went after the list was shown.
                refusal = gettext(NOTHING_CHOSEN)
            elif most == 1:
                refusal = gettext("People are erased one at a time: choose one.")
            messages.error(request, refusal)
            return redirect(request.get_full_path())
        if "confirmed" in request.POST:
            return None
        count = len(chosen)
        button = dict(self.get_action_choices(request))[action]
        if count == 1:
            title = ABOUT_ONE[action] % {"person": self.name_of(request, chosen[0])}
        else:
            title = ABOUT_SEVERAL[action] % {"count": count}
            button = f"{button} ({count})"
        back = request.get_full_path()
        if FILTERS in request.POST:
            back = self.page_of(request, chosen[0])
        context = self.context(
            request,
            title,
            action=action,
            chosen=chosen,
            button=button,
            back=back,
            filters=request.POST.get(FILTERS),
        )
        if action == "erase":
            context["forecast"] = erasure.forecast(chosen[0].user)
        return TemplateResponse(request, "admin/django_identity/confirm.html", context)

    def page_of(self, request: HttpRequest, identity: LinkedIdentity) -> str:
        """The page of ``identity``, with the filters of the list that has led to it."""
        site = self.admin_site.name
        name = "admin:django_identity_linkedidentity_change"
        address = reverse(name, args=[identity.pk], current_app=site)
        return f"{address}?{urlencode({FILTERS: request.POST[FILTERS]})}"
