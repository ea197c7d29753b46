"""The actions on linked identities, each with its own permission. What cannot be undone asks."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partialmethod
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.models import CHANGE, DELETION
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from django_identity.admin.listing import RecordAdmin
from django_identity.error_table import hint_of
from django_identity.lifecycle import operators
from django_identity.models import Consent, LinkedIdentity
from django_identity.texts import operators as wording
from django_identity.texts.operators import Words

CHANGE_PAGE = "admin:django_identity_linkedidentity_change"
CONFIRMED = "confirmed"
MOST_REFETCHED = 1_000
Chosen = tuple[LinkedIdentity, ...]


@dataclass(frozen=True, slots=True)
class Question:
    """The confirmation page of an action on ``most`` rows. ``asks``: the title for one person."""

    action: str
    title: Words
    text: Words
    button: Words
    asks: Words
    most: int = 100


REVOKE = Question(
    "revoke",
    _("Revoke at this site"),
    _(
        "Gates close at once, tokens and proofs are deleted and sessions that rest on the identity "
        "end. The consent at the service stays as it is; the person can come back by signing in."
    ),
    _("Revoke"),
    _("Revoke %(person)s at this site?"),
)
DISCONNECT = Question(
    "disconnect",
    _("Disconnect"),
    _(
        "The link is deleted: this identity no longer signs in to the account. A deletion that the "
        "person asks for at the service afterwards finds nobody here."
    ),
    _("Disconnect"),
    _("Disconnect %(person)s?"),
)
ERASE = Question(
    "erase",
    _("Erase"),
    _(
        "Everything that this site holds about the person through the identity is deleted for "
        "good, and the site's user is treated as its policy says. This cannot be undone."
    ),
    _("Erase for good"),
    _("Erase %(person)s?"),
    most=1,
)


class EraseForm(forms.Form):
    """A form with the person's e-mail address, typed by hand, so that nobody is erased by mistake.

    ``wanted``: the address, or the subject if there is none or the operator may not see it.
    """

    typed = forms.CharField(max_length=255, strip=False)

    def __init__(self, *args: Any, wanted: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._wanted = wanted
        self.fields["typed"].label = gettext("Type %(text)s to confirm") % {"text": wanted}
        self.fields["typed"].widget.attrs |= {"autocomplete": "off", "class": "vTextField"}

    def clean_typed(self) -> str:
        typed: str = self.cleaned_data["typed"]
        if self._wanted not in (typed, typed.strip()):
            raise forms.ValidationError(gettext("That is another text."))
        return typed


class IdentityActions(RecordAdmin):
    """The actions of the list. The buttons on an identity's own page post to them too."""

    actions = ("refetch", "revoke", "disconnect", "erase")
    has_refetch_permission = partialmethod(RecordAdmin.may, verb="refetch")
    has_revoke_permission = partialmethod(RecordAdmin.may, verb="revoke")
    has_erase_permission = partialmethod(RecordAdmin.may, verb="erase")

    def allowed_actions(self, request: HttpRequest, identity: LinkedIdentity) -> list[Any]:
        """Name and title of each action that the operator may use and that can do something."""
        useless = ("refetch", "revoke") if identity.consent == Consent.REVOKED else ()
        found = self.get_action_choices(request, default_choices=[])
        return [(name, title) for name, title in found if name not in useless]

    @admin.action(description=_("Re-fetch now"), permissions=["refetch"])
    def refetch(self, request: HttpRequest, queryset: QuerySet[LinkedIdentity]) -> HttpResponse:
        """Fetch the first ten while the operator waits; the others are made due."""
        chosen = tuple(queryset.order_by("pk")[:MOST_REFETCHED])
        done = operators.refetch_now(chosen)
        if done.fetched:
            text = ngettext(
                "%d identity was re-fetched.", "%d identities were re-fetched.", done.fetched
            )
            messages.success(request, text % done.fetched)
        for code, count in done.failed.items():
            failed = ngettext("%d re-fetch failed:", "%d re-fetches failed:", count) % count
            messages.error(request, f"{failed} {hint_of(code)}")
        if done.made_due:
            made_due = ngettext("%d more is due now.", "%d more are due now.", done.made_due)
            messages.info(request, made_due % done.made_due)
        self.note(request, chosen, CHANGE, gettext("Re-fetched."))
        return self.back(chosen)

    @admin.action(description=REVOKE.title, permissions=["revoke"])
    def revoke(self, request: HttpRequest, queryset: QuerySet[LinkedIdentity]) -> HttpResponse:
        chosen = self.confirmed(request, queryset, REVOKE)
        if isinstance(chosen, HttpResponse):
            return chosen
        revoked = operators.revoke(chosen)
        text = ngettext("%d identity was revoked.", "%d identities were revoked.", revoked)
        messages.success(request, text % revoked)
        self.note(request, chosen, CHANGE, gettext("Revoked at this site."))
        return self.back(chosen)

    @admin.action(description=DISCONNECT.title, permissions=["revoke"])
    def disconnect(self, request: HttpRequest, queryset: QuerySet[LinkedIdentity]) -> HttpResponse:
        """Remove links. One that made its account stays, unless the owner has another way in."""
        chosen = self.confirmed(request, queryset, DISCONNECT)
        if isinstance(chosen, HttpResponse):
            return chosen
        kept = operators.disconnect(chosen)
        removed = [identity for identity in chosen if identity not in kept]
        if removed:
            text = ngettext("%d link was removed.", "%d links were removed.", len(removed))
            messages.success(request, text % len(removed))
        for identity in kept:
            text = gettext("The link of %(person)s stays: it is the only way in to the account.")
            messages.warning(request, text % {"person": self.name_of(request, identity)})
        self.note(request, removed, CHANGE, gettext("Disconnected."))
        return self.to_list()

    @admin.action(description=ERASE.title, permissions=["erase"])
    def erase(self, request: HttpRequest, queryset: QuerySet[LinkedIdentity]) -> HttpResponse:
        """Erase one person, after the operator typed the address."""
        chosen = self.confirmed(request, queryset, ERASE)
        if isinstance(chosen, HttpResponse):
            return chosen
        receipt = operators.erase(chosen[0])
        self.note(request, chosen, DELETION, gettext("Erased."))
        if receipt.erased_at is not None:
            messages.success(request, gettext("The person was erased. A receipt was written."))
        else:
            text = gettext(
                "The identity is revoked; the site's own part of the erasure is still pending."
            )
            messages.warning(request, text)
        return self.to_list()

    def back(self, chosen: Chosen) -> HttpResponse:
        """To the identity's own page if one was chosen and is still there, else to the list."""
        # A link by code is deleted when it is revoked.
        if len(chosen) != 1 or not LinkedIdentity.objects.filter(pk=chosen[0].pk).exists():
            return self.to_list()
        site = self.admin_site.name
        return redirect(reverse(CHANGE_PAGE, args=[chosen[0].pk], current_app=site))

    def confirmed(
        self, request: HttpRequest, queryset: QuerySet[LinkedIdentity], question: Question
    ) -> Chosen | HttpResponse:
        """The chosen identities after the confirmation; before it, the confirmation page."""
        chosen = tuple(queryset.select_related("user").order_by("pk")[: question.most + 1])
        if not 0 < len(chosen) <= question.most:
            text = ngettext("Choose %d identity.", "Choose %d identities at most.", question.most)
            messages.error(request, text % question.most)
            return self.to_list()
        form, is_confirmed = None, CONFIRMED in request.POST
        if question is ERASE:
            email = wording.email_of(chosen[0].user) if self.may_see_people(request) else ""
            given = request.POST if is_confirmed else None
            form = EraseForm(given, wanted=email or chosen[0].subject)
        if is_confirmed and (form is None or form.is_valid()):
            return chosen
        title = question.title
        if len(chosen) == 1:
            title = str(question.asks) % {"person": self.name_of(request, chosen[0])}
        context = self.context(
            request,
            title,
            question=question,
            chosen=chosen,
            form=form,
            losses=wording.losses(operators.erasure_preview(chosen[0])) if form else (),
            checkbox_name=ACTION_CHECKBOX_NAME,
            select_across=request.POST.get("select_across", "0"),
        )
        return TemplateResponse(request, "admin/django_identity/confirm.html", context)
