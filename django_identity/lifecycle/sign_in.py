"""Sign-in: ``begin`` before the redirect to the service, ``complete`` at the callback.

There are three purposes: ``sign_in``, ``link`` (tied to the user who started it) and ``renew``
(which must return the same subject). A started sign-in is one row. One browser can complete it,
once, within an hour.
"""

import re
import secrets
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import NamedTuple, Self

from django.contrib.auth.models import AbstractBaseUser
from django.db.models import QuerySet
from django.utils import timezone
from django.utils.encoding import iri_to_uri
from django.views.decorators.debug import sensitive_variables

from django_identity import database, exceptions, vault
from django_identity.conf import Application
from django_identity.credentials import RejectionReason, VerifiedCredential
from django_identity.lifecycle import claims, key_sets, kyc, linking, unfinished
from django_identity.lifecycle.arrivals import Arrival, LinkRequest
from django_identity.models import AuthorizationRequest, LinkedIdentity, Purpose, digest
from django_identity.models.flows import COMPLETED
from django_identity.secrets import Secret
from django_identity.service import ServiceClient
from django_identity.service.answers import (
    ClaimsAnswer,
    KycStatus,
    Profile,
    TokenAnswer,
)
from django_identity.service.authorization import authorization_url, code_verifier

# Seconds from the button to the callback. A first verification at the service takes long. The same
# hour as upkeep's, which must not take back what a sign-in has just begun.
SIGN_IN_LIFETIME = int(unfinished.LONGEST_SIGN_IN.total_seconds())
STATE = re.compile(r"[A-Za-z0-9_-]{16,128}")
# RFC 6749 appendix A.11: visible ASCII and space. The limit of the length is our own.
CODE = re.compile(r"[\x20-\x7e]{1,2048}")

PROFILE_SCOPE = "profile:read"
#: What cannot be read or proven leaves the person signed in, with gates closed.
UNREAD = (exceptions.ServiceError, exceptions.CredentialRejected)
#: A credential that is about somebody else ends the sign-in.
ABOUT_ANOTHER = frozenset(
    {RejectionReason.PAYLOAD_SUB, RejectionReason.PAYLOAD_ENVIRONMENT}
)


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
                "not one state and one code", code="callback_invalid"
            )
        if not STATE.fullmatch(state[0]):
            raise exceptions.FlowError("no state of ours", code="callback_invalid")
        if code and not CODE.fullmatch(code[0]):
            raise exceptions.FlowError("no code", code="callback_invalid")
        if code:
            return cls(state[0], code[0])
        # A malformed error is still an error. Its text is not used.
        service_code = exceptions.shaped_code(error[0])
        code_here = "authorization_refused"
        if service_code == "access_denied":
            code_here = service_code
        return cls(state[0], error=exceptions.FlowError(service_code, code=code_here))


@dataclass(frozen=True, slots=True)
class Completed:
    """The result of a callback. ``linked`` is None if the same callback was completed before."""

    next_url: str
    purpose: Purpose
    linked: linking.Linked | None = None


class Plan(NamedTuple):
    """What a press of the button means: sign in, link or renew, and what the person is asked."""

    purpose: Purpose
    scopes: tuple[str, ...]


def plan_for(
    user: AbstractBaseUser | None, *, application: Application, more: str = ""
) -> Plan:
    """What a press of the button means for ``user``, who is signed in.

    The scopes are ``SCOPES``, and some of ``LATER_SCOPES``: the one for which a gate has asked, and
    those that the person has allowed already.
    """
    purpose = Purpose.SIGN_IN
    allowed: list[str] = []
    if user is not None:
        purpose = Purpose.LINK
        linked = (
            LinkedIdentity.objects.under(application).filter(user_id=user.pk).first()
        )
        if linked is not None:
            purpose = Purpose.RENEW
            allowed = linked.scopes

    wanted = {more, *allowed}
    later = [scope for scope in application.later_scopes if scope in wanted]
    return Plan(purpose, (*application.scopes, *later))


def begin(
    application: Application,
    *,
    user: AbstractBaseUser | None,
    next_url: str,
    redirect_uri: str,
    browser_key: str,
    more: str = "",
) -> str:
    """Start a sign-in and return the service's address to send the browser to.

    ``user``: who is signed in now. ``browser_key`` is the secret in this browser's cookie. Only
    this browser can complete the sign-in. ``more``: a scope for which a gate has asked.
    """
    plan = plan_for(user, application=application, more=more)
    state = secrets.token_urlsafe(32)
    verifier = code_verifier()
    request = AuthorizationRequest(
        state_digest=digest(state),
        browser_digest=digest(browser_key),
        application=application.alias,
        environment=application.environment,
        purpose=plan.purpose,
        user_id=user.pk if user else None,
        # In ASCII, which every database holds.
        next=iri_to_uri(next_url),
        redirect_uri=redirect_uri,
        scopes=list(plan.scopes),
        expires_at=timezone.now() + timedelta(seconds=SIGN_IN_LIFETIME),
    )
    _save(request, application, verifier)
    return authorization_url(
        application,
        state=state,
        verifier=verifier,
        redirect_uri=redirect_uri,
        scopes=plan.scopes,
    )


def _save(
    request: AuthorizationRequest, application: Application, verifier: Secret
) -> None:
    """Save a new sign-in with its verifier, encrypted."""
    keys = application.encryption_keys
    context = request.sealing_context("code_verifier")
    request.code_verifier = vault.seal(verifier, keys=keys, context=context)
    request.save(force_insert=True)


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
    would undo the claim. After an ``IdentityError`` nothing else has changed, but for what somebody
    brought who returned and is refused: see ``linking``.
    """
    request = _find(application, callback.state, browser_key)
    if user is not None and request.completed_by_id == user.pk:
        # They reload the page or go back to it, in the session that this sign-in gave them.
        return Completed(request.next, Purpose(request.purpose))
    row = _claim(request)
    try:
        if request.purpose != Purpose.SIGN_IN:
            # A link or a renewal belongs to the user who started it.
            if user is None:
                raise exceptions.FlowError(code="session_ended")
            if user.pk != request.user_id:
                raise exceptions.FlowError(code="user_changed")
        if callback.error is not None:
            raise callback.error
        linked = linking.link(_learn(application, request, callback.code, user))
    except exceptions.IdentityError as error:
        # The code verifier has no use any more.
        ended = {"outcome": error.code, "code_verifier": ""}
        database.after_a_call(partial(row.update, **ended))
        error.next_url = request.next
        raise
    # Not ``after_a_call``: since the last call ``linking`` has used the connection.
    row.update(outcome=COMPLETED, completed_by=linked.user, code_verifier="")
    return Completed(request.next, Purpose(request.purpose), linked)


def _find(
    application: Application, state: str, browser_key: str | None
) -> AuthorizationRequest:
    """The sign-in with this state that this browser started. Raises ``FlowError``."""
    found = AuthorizationRequest.objects.filter(state_digest=digest(state)).first()
    if found is None:
        raise exceptions.FlowError(code="request_unknown")
    started = (found.application, found.environment, found.browser_digest)
    here = (application.alias, application.environment, digest(browser_key or ""))
    # A callback with the attacker's own state and code must not sign the victim in as the attacker
    # (RFC 6749 §10.12). So the state counts only in the browser that began.
    if started != here:
        raise exceptions.FlowError(code="request_unknown")
    return found


def _claim(request: AuthorizationRequest) -> QuerySet[AuthorizationRequest]:
    """Claim the sign-in for this callback, and return its row.

    It cannot be claimed again, even after a failure.
    """
    now = timezone.now()
    if request.consumed_at is None and request.expires_at <= now:
        raise exceptions.FlowError(code="request_expired")
    row = AuthorizationRequest.objects.filter(pk=request.pk)
    # One conditional UPDATE: of two callbacks with the same state, only one goes on to exchange its
    # code, which must be used once (RFC 6749 §10.5).
    if not row.filter(consumed_at=None).update(consumed_at=now):
        raise exceptions.FlowError(code="request_used")
    return row


def _learn(
    application: Application,
    request: AuthorizationRequest,
    code: str,
    user: AbstractBaseUser | None,
) -> LinkRequest:
    """Exchange the code once and read the person's data, which must be about one subject."""
    client = ServiceClient(application)
    answer = _exchange(application, request, code)
    scopes = answer.scopes
    if scopes is None:
        # The service left the member out, so it granted what was asked for (RFC 6749 §5.1).
        scopes = tuple(request.scopes)

    subject = key_sets.subject_of(application, answer)
    asked_at = timezone.now()
    person = _identify(client, answer.access_token, scopes, subject)
    _read_rest(application, answer.access_token, scopes, person)
    return LinkRequest(
        application=application,
        arrival=Arrival(request.purpose),
        user_id=user.pk if user else None,
        began_at=request.created_at,
        said_at=asked_at,
        subject=person.subject,
        scopes=scopes,
        profile=person.profile,
        kyc=person.kyc,
        tokens=answer,
        claims=person.claims,
        proof=person.proof,
        unread=person.unread,
    )


@dataclass(slots=True)
class _Person:
    """What the service has said so far of one subject. ``unread``: see ``LinkRequest``."""

    subject: str
    profile: Profile
    kyc: KycStatus | None
    claims: ClaimsAnswer | None
    proof: VerifiedCredential | None = None
    unread: str = ""


def _identify(
    client: ServiceClient, token: Secret, scopes: tuple[str, ...], subject: str | None
) -> _Person:
    """Read the profile, and who the person is. A failure ends the sign-in.

    ``subject``: None if the token answer names nobody. Then the first of these answers decides.
    """
    profile = level = listed = None
    if PROFILE_SCOPE in scopes:
        profile = client.profile(subject, access_token=token)
        subject = profile.id
    if claims.SCOPE in scopes and subject is None:
        listed = client.claims(None, access_token=token)
        subject = listed.user_id
    if kyc.SCOPE in scopes and subject is None:
        level = client.kyc(None, access_token=token)
        subject = level.subject
    if subject is None:
        raise exceptions.MalformedAnswer(
            "nobody named", endpoint="token", code="subject_unknown"
        )
    return _Person(subject, profile or Profile(id=subject), level, listed)


def _read_rest(
    application: Application, token: Secret, scopes: tuple[str, ...], person: _Person
) -> None:
    """Read the level and the claims, if they are not there yet, and verify the claims.

    A failure leaves the person signed in, with gates closed, unless it is about somebody else.
    """
    client = ServiceClient(application)
    subject = person.subject
    try:
        if kyc.SCOPE in scopes and person.kyc is None:
            person.kyc = client.kyc(subject, access_token=token)
    except UNREAD as error:
        _require_about_person(error)
        person.unread = error.code
    try:
        if claims.SCOPE in scopes:
            if person.claims is None:
                person.claims = client.claims(subject, access_token=token)
            person.proof = key_sets.verify_answer(
                application, person.claims, subject=subject
            )
    except UNREAD as error:
        _require_about_person(error)
        person.claims = None
        person.unread = error.code


def _exchange(
    application: Application, request: AuthorizationRequest, code: str
) -> TokenAnswer:
    """Exchange the code once, with the verifier that only this site knows (RFC 7636 §4.5)."""
    keys = application.encryption_keys
    context = request.sealing_context("code_verifier")
    verifier = vault.unseal(request.code_verifier, keys=keys, context=context)
    return ServiceClient(application).exchange_code(
        code=code, code_verifier=verifier, redirect_uri=request.redirect_uri
    )


def _require_about_person(error: exceptions.IdentityError) -> None:
    """Raise ``error`` again if it is about somebody else: another subject or environment."""
    mismatches = (exceptions.SubjectMismatch, exceptions.EnvironmentMismatch)
    if isinstance(error, mismatches) or getattr(error, "reason", None) in ABOUT_ANOTHER:
        raise error
