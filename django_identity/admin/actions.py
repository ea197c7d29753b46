"""The actions on linked identities, each with its own permission and confirmation page."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partialmethod, wraps
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

from django_identity import database
from django_identity.admin import wording
from django_identity.admin.listing import CONFIRMED, RecordAdmin
from django_identity.admin.wording import Words
from django_identity.backends import backend_of
from django_identity.exceptions import IdentityError
from django_identity.lifecycle import operators
from django_identity.lifecycle.erasure import sessions_ended_by
from django_identity.models import Consent, LinkedIdentity

CHANGELIST = "admin:django_identity_linkedidentity_changelist"
CHANGE_PAGE = "admin:django_identity_linkedidentity_change"
Chosen = tuple[LinkedIdentity, ...]
Action = Callable[[Any, HttpRequest, Any], HttpResponse]


@dataclass(frozen=True, slots=True)
class Question:
    """The confirmation page of an action. ``most``: the largest number of rows at once.

    ``permission``: the verb of the permission. ``asks``: the title for one person.
    """

    action: str
    permission: str
    title: Words
    text: Words
    button: Words
    most: int
    is_dangerous: bool = False
    asks: Words | None = None


REFETCH = Question(
    "refetch",
    "refetch",
    _("Re-fetch now"),
    _(
        "The service is asked for the claims again. The first ten are fetched while you wait; the "
        "others are made due and fetched in the background."
    ),
    _("Re-fetch"),
    most=1_000,
)
CHECK = Question(
    "check_credential",
    "check",
    _("Check the credential now"),
    _(
        "The stored credential is verified again with the service's current keys, and every check "
        "is shown. Nothing is changed."
    ),
    _("Check"),
    most=1,
)
REVOKE = Question(
    "revoke",
    "revoke",
    _("Revoke at this site"),
    _(
        "Gates close at once, tokens and proofs are deleted and sessions that rest on the identity "
        "end. The consent at the service stays as it is; the person can come back by signing in."
    ),
    _("Revoke"),
    most=100,
    is_dangerous=True,
    asks=_("Revoke %(person)s at this site?"),
)
ERASE = Question(
    "erase",
    "erase",
    _("Erase"),
    _(
        "Everything that this site holds about the person through the identity is deleted for "
        "good, and the site's user is treated as its policy says. This cannot be undone."
    ),
    _("Erase for good"),
    most=1,
    is_dangerous=True,
    asks=_("Erase %(person)s?"),
)
QUESTIONS = (REFETCH, CHECK, REVOKE, ERASE)


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


def _confirmed(question: Question) -> Callable[[Action], Action]:
    """Decorate an action, which runs with the chosen identities after the confirmation page."""

    def decorate(act: Action) -> Action:
        @admin.action(description=question.title, permissions=[question.permission])
        @wraps(act)
        def action(
            self: IdentityActions, request: HttpRequest, queryset: QuerySet[LinkedIdentity]
        ) -> HttpResponse:
            chosen = self.choose(request, queryset, question)
            if isinstance(chosen, HttpResponse):
                return chosen
            try:
                return act(self, request, chosen)
            except IdentityError as error:
                messages.error(request, wording.error_in_words(error.code))
                return self.back(chosen)

        return action

    return decorate


class IdentityActions(RecordAdmin):
    """The actions of the list. The buttons on an identity's own page post to them too."""

    actions = tuple(question.action for question in QUESTIONS)
    has_refetch_permission = partialmethod(RecordAdmin.may, verb="refetch")
    has_check_permission = partialmethod(RecordAdmin.may, verb="check")
    has_revoke_permission = partialmethod(RecordAdmin.may, verb="revoke")
    has_erase_permission = partialmethod(RecordAdmin.may, verb="erase")

    @database.non_atomic
    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """The list and its actions, outside a transaction, because a re-fetch needs that."""
        return super().changelist_view(request, extra_context)

    def allowed_actions(self, request: HttpRequest, identity: LinkedIdentity) -> list[Question]:
        """The actions that the operator may use and that can do something. Dangerous ones last."""
        is_revoked = identity.consent == Consent.REVOKED
        offered = (ERASE,) if is_revoked else QUESTIONS
        return [question for question in offered if self.may(request, question.permission)]

    @_confirmed(REFETCH)
    def refetch(self, request: HttpRequest, chosen: Chosen) -> HttpResponse:
        done = operators.refetch_now(chosen)
        fetched = ngettext(
            "%d identity was re-fetched.", "%d identities were re-fetched.", done.fetched
        )
        if done.fetched:
            messages.success(request, fetched % done.fetched)
        for code, count in done.failed.items():
            failed = ngettext("%d re-fetch failed:", "%d re-fetches failed:", count) % count
            messages.error(request, f"{failed} {wording.error_in_words(code)}")
        if done.made_due:
            made_due = ngettext("%d more is due now.", "%d more are due now.", done.made_due)
            messages.info(request, made_due % done.made_due)
        self.note(request, chosen, CHANGE, gettext("Re-fetched."))
        return self.back(chosen)

    @_confirmed(CHECK)
    def check_credential(self, request: HttpRequest, chosen: Chosen) -> HttpResponse:
        trace = operators.check_credential(chosen[0])
        self.note(request, chosen, CHANGE, gettext("Checked the credential."))
        context = self.context(request, CHECK.title, identity=chosen[0], trace=trace)
        return TemplateResponse(request, "admin/django_identity/check.html", context)

    @_confirmed(REVOKE)
    def revoke(self, request: HttpRequest, chosen: Chosen) -> HttpResponse:
        revoked = operators.revoke(chosen)
        text = ngettext("%d identity was revoked.", "%d identities were revoked.", revoked)
        messages.success(request, text % revoked)
        self.note(request, chosen, CHANGE, gettext("Revoked at this site."))
        return self.back(chosen)

    @_confirmed(ERASE)
    def erase(self, request: HttpRequest, chosen: Chosen) -> HttpResponse:
        """Erase one person, after the operator typed the subject."""
        receipt = operators.erase(chosen[0])
        self.note(request, chosen, DELETION, gettext("Erased."))
        if receipt.erased_at is not None:
            messages.success(request, gettext("The person was erased. A receipt was written."))
        else:
            text = gettext(
                "The identity is revoked; the site's own part of the erasure is still pending."
            )
            messages.warning(request, text)
        return self.back(())

    def back(self, chosen: Chosen) -> HttpResponse:
        """Redirect to the identity's own page if one was chosen, else to the list.

        A site may have several admins: it is the one in which the operator is.
        """
        page, keys = (CHANGE_PAGE, [chosen[0].pk]) if len(chosen) == 1 else (CHANGELIST, [])
        return redirect(reverse(page, args=keys, current_app=self.admin_site.name))

    def choose(
        self, request: HttpRequest, queryset: QuerySet[LinkedIdentity], question: Question
    ) -> Chosen | HttpResponse:
        """The chosen identities after the confirmation; before it, the confirmation page."""
        chosen = tuple(queryset.select_related("user").order_by("pk")[: question.most + 1])
        if len(chosen) > question.most:
            text = ngettext("Choose %d identity.", "Choose %d identities at most.", question.most)
            messages.error(request, text % question.most)
            return redirect(request.get_full_path())
        self.tell_of_gone(request, chosen)
        if not chosen:
            return redirect(request.get_full_path())
        is_confirmed = CONFIRMED in request.POST
        form = None
        if question is ERASE:
            given = request.POST if is_confirmed else None
            email = wording.email_of(chosen[0].user) if self.may_see_people(request) else ""
            form = EraseForm(given, wanted=email or chosen[0].subject)
        if is_confirmed and (form is None or form.is_valid()):
            return chosen
        context = self.context(
            request,
            self._title(request, question, chosen),
            question=question,
            chosen=chosen,
            form=form,
            losses=self._losses(question, chosen),
            checkbox_name=ACTION_CHECKBOX_NAME,
            select_across=request.POST.get("select_across", "0"),
        )
        return TemplateResponse(request, "admin/django_identity/confirm.html", context)

    def _title(self, request: HttpRequest, question: Question, chosen: Chosen) -> Words:
        """The question, with the person's name if one identity was chosen."""
        if question.asks is None or len(chosen) != 1:
            return question.title
        person = wording.person_name(chosen[0].user, may_see=self.may_see_people(request))
        return str(question.asks) % {"person": person}

    @staticmethod
    def _losses(question: Question, chosen: Chosen) -> list[str]:
        """What the action ends or deletes."""
        if question is ERASE:
            return wording.losses(operators.erasure_preview(chosen[0]))
        if question is REVOKE:
            return wording.ended_sessions(sessions_ended_by(chosen, backend_of=backend_of))
        return []
