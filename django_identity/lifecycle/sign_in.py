"""Sign-in: ``begin`` before the redirect to the service, ``complete`` at the callback.

There are three purposes: ``sign_in``, ``link`` (tied to the user who started it) and ``renew``
(which must return the same subject).
"""

import re
from dataclasses import dataclass, field
from typing import Self

from django.contrib.auth.models import AbstractBaseUser
from django.utils import timezone
from django.views.decorators.debug import sensitive_variables

from django_identity import exceptions, vault
from django_identity.conf import Application
from django_identity.credentials import RejectionReason
from django_identity.lifecycle import authorization_requests, key_sets, linking
from django_identity.lifecycle.authorization_requests import SignInIntent
from django_identity.lifecycle.service_data import ServiceData
from django_identity.models import AuthorizationRequest, LinkedIdentity, Purpose
from django_identity.service import ServiceClient, refusals
from django_identity.service.answers import Profile
from django_identity.service.authorization import authorization_url, pkce_pair, state_value

STATE = re.compile(r"[A-Za-z0-9_-]{16,128}")
# RFC 6749 appendix A.11: visible ASCII and space. The limit of the length is our own.
CODE = re.compile(r"[\x20-\x7e]{1,2048}")
# RFC 6749 appendix A.7
ERROR = re.compile(r"[\x20-\x21\x23-\x5b\x5d-\x7e]{1,128}")

#: What cannot be read or proven leaves the person signed in, with gates closed.
UNREAD = (exceptions.ServiceError, exceptions.CredentialRejected)
#: A credential that is about somebody else ends the sign-in.
ABOUT_ANOTHER = frozenset({RejectionReason.PAYLOAD_SUB, RejectionReason.PAYLOAD_ENVIRONMENT})


@dataclass(frozen=True, slots=True)
class Callback:
    """The parameters of the service's redirect: ``code``, or the ``error`` that it means."""

    state: str = field(repr=False)
    code: str = field(repr=False, default="")
    error: exceptions.IdentityError | None = None

    @classmethod
    def parse(cls, *, state: list[str], code: list[str], error: list[str]) -> Self:
        """Parse the values of each query parameter. Raises ``FlowError``."""
        if len(state) != 1 or len(code) + len(error) != 1:
            raise exceptions.FlowError(
                "state, and one of code and error, once each", code="callback_invalid"
            )
        if not STATE.fullmatch(state[0]):
            raise exceptions.FlowError("state is not of our making", code="callback_invalid")
        if code and not CODE.fullmatch(code[0]):
            raise exceptions.FlowError("code is not of RFC 6749's form", code="callback_invalid")
        if code:
            return cls(state[0], code[0])
        # A malformed error is still an error. Its text is not used.
        said = error[0] if ERROR.fullmatch(error[0]) else "invalid"
        if said == "access_denied":
            return cls(state[0], error=exceptions.FlowError(code="access_denied"))
        refused = exceptions.FlowError(exceptions.shaped_code(said), code="authorization_refused")
        return cls(state[0], error=refusals.of_callback(said) or refused)


@dataclass(frozen=True, slots=True)
class Completed:
    """The result of a callback. ``login``: the identity on which a new session rests, if any.

    ``identity`` and ``purpose`` are None if the same callback was completed before.
    """

    user: AbstractBaseUser
    next_url: str
    login: LinkedIdentity | None = None
    identity: LinkedIdentity | None = None
    purpose: Purpose | None = None


def purpose_for(user: AbstractBaseUser | None, *, application: Application) -> Purpose:
    """The purpose of a press of the button: sign in, link or renew."""
    if user is None:
        return Purpose.SIGN_IN
    linked = LinkedIdentity.objects.under(application).filter(user_id=user.pk)
    return Purpose.RENEW if linked.exists() else Purpose.LINK


def begin(application: Application, intent: SignInIntent, *, browser_key: str) -> str:
    """Start a sign-in and return the service's address to send the browser to.

    ``browser_key`` is the secret in this browser's cookie. Only this browser can complete it.
    """
    state, pkce = state_value(), pkce_pair()
    request = authorization_requests.start(
        application, intent, state=state, browser_key=browser_key, pkce=pkce
    )
    return authorization_url(
        application,
        state=state,
        code_challenge=pkce.challenge,
        redirect_uri=request.redirect_uri,
        scopes=application.scopes,
    )


@sensitive_variables()
def complete(
    application: Application,
    callback: Callback,
    *,
    browser_key: str | None,
    user: AbstractBaseUser | None,
) -> Completed:
    """Complete a sign-in: claim it, ask the service who the person is, then link.

    ``user`` is the user who is signed in now. Must run outside any transaction, because a rollback
    would undo the claim. After an ``IdentityError`` nothing else has changed.
    """
    if browser_key is None:
        raise exceptions.FlowError("no browser key", code="request_unknown")
    request = authorization_requests.find(
        application, state=callback.state, browser_key=browser_key
    )
    was_completed = request.outcome == authorization_requests.COMPLETED
    if user is not None and was_completed and request.completed_by_id == user.pk:
        return Completed(user, request.next)
    authorization_requests.claim(request)
    try:
        return _complete_claimed(application, request, callback, user)
    except exceptions.IdentityError as error:
        authorization_requests.close(request, outcome=error.code)
        error.next_url = request.next
        raise


def _complete_claimed(
    application: Application,
    request: AuthorizationRequest,
    callback: Callback,
    user: AbstractBaseUser | None,
) -> Completed:
    if request.purpose != Purpose.SIGN_IN:
        if user is None:
            raise exceptions.FlowError(code="session_ended")
        if user.pk != request.user_id:
            raise exceptions.FlowError(code="user_changed")
    if callback.error is not None:
        raise callback.error
    data = _learn(application, request, callback.code)
    purpose = Purpose(request.purpose)
    link_request = linking.LinkRequest(
        application=application,
        arrival=linking.ARRIVALS[purpose],
        user_id=request.user_id,
        user=user,
        began_at=request.created_at,
    )
    linked = linking.link(link_request, data)
    authorization_requests.close(request, completed_by=linked.user)
    return Completed(linked.user, request.next, linked.session, linked.identity, purpose)


def _learn(application: Application, request: AuthorizationRequest, code: str) -> ServiceData:
    """Exchange the code once and read the person's data, which must be about one subject."""
    client, keys = ServiceClient(application), application.encryption_keys
    context = request.sealing_context("code_verifier")
    verifier = vault.unseal(request.code_verifier, keys=keys, context=context)
    answer = client.exchange_code(
        code=code, code_verifier=verifier, redirect_uri=request.redirect_uri
    )
    scopes = tuple(request.scopes) if answer.scopes is None else answer.scopes
    subject, token = key_sets.subject_of(application, answer), answer.access_token
    asked_at = timezone.now()
    profile = kyc = listed = None
    # If the token answer does not name the person, the first of these answers does.
    if "profile:read" in scopes:
        profile = client.profile(subject, access_token=token)
        subject = profile.id
    if "claims:read" in scopes and subject is None:
        listed = client.claims(None, access_token=token)
        subject = listed.user_id
    if "kyc:read" in scopes and subject is None:
        kyc = client.kyc(None, access_token=token)
        subject = kyc.subject
    if subject is None:
        raise exceptions.MalformedAnswer(
            "no answer names the person", endpoint="token", code="subject_unknown"
        )
    unread = ""
    try:
        if "kyc:read" in scopes and kyc is None:
            kyc = client.kyc(subject, access_token=token)
    except UNREAD as error:
        unread = _code_of(error)
    proof = None
    try:
        if "claims:read" in scopes:
            listed = listed or client.claims(subject, access_token=token)
            proof = key_sets.verify_answer(application, listed, subject=subject)
    except UNREAD as error:
        listed, unread = None, _code_of(error)
    return ServiceData(
        subject=subject, scopes=scopes, tokens=answer, kyc=kyc, claims=listed, proof=proof,
        profile=profile or Profile(id=subject), asked_at=asked_at, unread=unread,
    )  # fmt: skip


def _code_of(error: exceptions.IdentityError) -> str:
    """The code of an error that leaves the person signed in, and the gates closed.

    Raises an error that is about somebody else: another subject or environment.
    """
    if isinstance(error, exceptions.CredentialRejected):
        if error.reason in ABOUT_ANOTHER:
            raise error
        return error.code
    if isinstance(error, (exceptions.SubjectMismatch, exceptions.EnvironmentMismatch)):
        raise error
    return error.code
