"""Sign-in: ``begin`` before the redirect to the service, ``complete`` at the callback.

There are three purposes: ``sign_in``, ``link`` (tied to the user who started it) and ``renew``
(which must return the same subject).
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Self, TypeVar

from django.contrib.auth.models import AbstractBaseUser
from django.views.decorators.debug import sensitive_variables

from django_identity import exceptions, vault
from django_identity.conf import Application
from django_identity.lifecycle.arrival import authorization_requests, limits, linking
from django_identity.lifecycle.arrival.authorization_requests import SignInIntent
from django_identity.lifecycle.arrival.service_data import ServiceData
from django_identity.lifecycle.upkeep import key_sets
from django_identity.models import AuthorizationRequest, LinkedIdentity, Purpose
from django_identity.service import ServiceClient, budget, refusals
from django_identity.service.answers import Profile
from django_identity.service.authorization import authorization_url, pkce_pair, state_value
from django_identity.service.transport import seconds_left, within

# Seconds. A person stays at the service at least so long, and a callback may wait so long.
AWAY_AT_LEAST = 5.0
WAITS_AT_CALLBACK = 2.0
STATE = re.compile(r"[A-Za-z0-9_-]{16,128}")
# RFC 6749 appendix A.11: visible ASCII and space. The limit of the length is our own.
CODE = re.compile(r"[\x20-\x7e]{1,2048}")
# RFC 6749 appendix A.7
ERROR = re.compile(r"[\x20-\x21\x23-\x5b\x5d-\x7e]{1,128}")

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Callback:
    """The parameters of the service's redirect: ``code``, or the ``error`` that it means."""

    state: str = field(repr=False)
    code: str = field(repr=False, default="")
    error: exceptions.IdentityError | None = None

    @classmethod
    def parse(cls, *, state: list[str], code: list[str], error: list[str]) -> Self:
        """Parse the values of each query parameter. Raises ``CallbackInvalid``."""
        if len(state) != 1 or len(code) + len(error) != 1:
            raise exceptions.CallbackInvalid("state, and one of code and error, once each")
        if not STATE.fullmatch(state[0]):
            raise exceptions.CallbackInvalid("state is not of our making")
        if code and not CODE.fullmatch(code[0]):
            raise exceptions.CallbackInvalid("code is not of RFC 6749's form")
        if code:
            return cls(state[0], code[0])
        # A malformed error is still an error. Its text is not used.
        said = error[0] if ERROR.fullmatch(error[0]) else "invalid"
        if said == exceptions.AccessDenied.code:
            return cls(state[0], error=exceptions.AccessDenied())
        refused = exceptions.AuthorizationRefused(exceptions.shaped_code(said))
        return cls(state[0], error=refusals.of_callback(said) or refused)


@dataclass(frozen=True, slots=True)
class Completed:
    """The result of a callback. ``login``: the identity that signs the browser in, if any.

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


def require_open(application: Application) -> None:
    """Raises ``RateLimited`` if a pause of the service would stop the sign-in."""
    budget.require_sign_in(application, patience=AWAY_AT_LEAST)


def begin(application: Application, intent: SignInIntent, *, browser_key: str, address: str) -> str:
    """Start a sign-in and return the service's address to send the browser to.

    ``browser_key`` is the secret in this browser's cookie. Only this browser can complete it.
    ``address`` is the person's network address. Raises ``TooManyStarts``, and ``RateLimited`` while
    the service takes no sign-ins.
    """
    require_open(application)
    limits.take_start(application, browser_key=browser_key, address=address)
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
        raise exceptions.RequestUnknown("no browser key")
    request = authorization_requests.find(
        application, state=callback.state, browser_key=browser_key
    )
    was_completed = request.outcome == authorization_requests.COMPLETED
    if user is not None and was_completed and request.completed_by_id == user.pk:
        return Completed(user, request.next)
    if callback.error is None:
        # Raised before the sign-in is claimed, so the person can use it after the pause.
        budget.require_sign_in(application, patience=WAITS_AT_CALLBACK)
    authorization_requests.claim(request)
    try:
        return _complete_claimed(application, request, callback, user)
    except exceptions.IdentityError as error:
        authorization_requests.close(request, outcome=error.code)
        error.next_url = request.next
        raise


@sensitive_variables()
def _complete_claimed(
    application: Application,
    request: AuthorizationRequest,
    callback: Callback,
    user: AbstractBaseUser | None,
) -> Completed:
    if request.purpose != Purpose.SIGN_IN:
        if user is None:
            raise exceptions.SessionEnded
        if user.pk != request.user_id:
            raise exceptions.UserChanged
    if callback.error is not None:
        raise callback.error
    with within(application.callback_seconds):
        data = _learn(application, request, callback.code)
    purpose = Purpose(request.purpose)
    link_request = linking.LinkRequest(
        application=application,
        purpose=purpose,
        user_id=request.user_id,
        began_at=request.created_at,
        complete=partial(authorization_requests.close, request),
    )
    identity, owner = linking.link(link_request, data, user=user)
    login = identity if purpose == Purpose.SIGN_IN else None
    return Completed(owner, request.next, login, identity, purpose)


@sensitive_variables()
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
        raise exceptions.SubjectUnknown("no answer names the person", endpoint="token")
    if "kyc:read" in scopes and kyc is None:
        kyc = _unless_late(lambda: client.kyc(subject, access_token=token))
    if "claims:read" in scopes and listed is None:
        listed = _unless_late(lambda: client.claims(subject, access_token=token))
    # Without a proof in time the answer is not used.
    proven = listed and _unless_late(
        lambda: (listed, key_sets.verify_answer(application, listed, subject=subject))
    )
    claims, proof = proven or (None, None)
    return ServiceData(
        subject=subject, scopes=scopes, tokens=answer, kyc=kyc, claims=claims, proof=proof,
        profile=profile or Profile(id=subject),
    )  # fmt: skip


def _unless_late(read: Callable[[], T]) -> T | None:
    """The answer, or None if it does not come in time. Upkeep asks for it then."""
    try:
        return read()
    except exceptions.ServiceTimeout:
        return None
    except exceptions.KeysUnavailable as error:
        if seconds_left() > 0 and not isinstance(error.__cause__, exceptions.ServiceTimeout):
            raise
        return None
