"""Who came back from the service: the code is exchanged once, and the answers are read.

Until the subject is known, any error ends the sign-in. After that an answer that cannot be read or
proven leaves the person signed in, with gates closed (``UNREAD``). An answer about somebody else
ends the sign-in (``MISMATCHES``, ``ABOUT_ANOTHER``).
"""

from dataclasses import dataclass

from django.contrib.auth.models import AbstractBaseUser
from django.utils import timezone

from django_identity import conf, exceptions
from django_identity.conf.rules import Scopes
from django_identity.credentials import RejectionReason
from django_identity.lifecycle.arriving.request import Arrival, LinkRequest
from django_identity.lifecycle.ground import kyc, sealing
from django_identity.lifecycle.ground.verified import VerifiedAnswer
from django_identity.lifecycle.said import claims, key_sets, scopes
from django_identity.logs import LogEvent, log_failure
from django_identity.models import AuthorizationRequest
from django_identity.secrets import Secret
from django_identity.service import ServiceClient
from django_identity.service.answers import (
    ClaimsAnswer,
    KycStatus,
    Profile,
    TokenAnswer,
)

PROFILE_SCOPE = "profile:read"
#: What cannot be read or proven leaves the person signed in, with gates closed.
UNREAD = (exceptions.ServiceError, exceptions.CredentialRejected)
#: An answer about somebody else ends the sign-in,
MISMATCHES = (exceptions.SubjectMismatch, exceptions.EnvironmentMismatch)
#: and so does a credential about somebody else.
ABOUT_ANOTHER = frozenset(
    {RejectionReason.PAYLOAD_SUB, RejectionReason.PAYLOAD_ENVIRONMENT},
)


def learn(
    request: AuthorizationRequest,
    code: str,
    user: AbstractBaseUser | None,
) -> LinkRequest:
    """Exchange the code once and read the person's data, which must be about one subject."""
    application = conf.application()
    client = ServiceClient(application)
    answer = _exchange(client, request, code)
    allowed = scopes.allowed_by(answer, asked=request.scopes)
    subject = key_sets.subject_of(application, answer)
    asked_at = timezone.now()
    person = _identify(client, answer.access_token, allowed, subject)
    _read_rest(client, answer.access_token, allowed, person)
    return LinkRequest(
        arrival=Arrival(request.purpose),
        user_id=user.pk if user else None,
        began_at=request.created_at,
        said_at=asked_at,
        subject=person.subject,
        scopes=allowed,
        profile=person.profile,
        kyc=person.kyc,
        tokens=answer,
        claims=person.claims,
        unread=person.unread,
    )


@dataclass(slots=True, repr=False)
class _Person:
    """What the service has said so far of one subject. ``unread``: see ``LinkRequest``."""

    subject: str
    profile: Profile
    kyc: KycStatus | None
    listed: ClaimsAnswer | None
    claims: VerifiedAnswer | None = None
    unread: str = ""


def _identify(
    client: ServiceClient,
    token: Secret,
    allowed: Scopes,
    subject: str | None,
) -> _Person:
    """Read the profile, and who the person is. A failure ends the sign-in.

    ``subject``: None unless the token answer names it. Then the first of these answers decides.
    """
    profile = level = listed = None
    if PROFILE_SCOPE in allowed:
        profile = client.profile(subject, access_token=token)
        subject = profile.id
    if claims.SCOPE in allowed and subject is None:
        listed = client.claims(None, access_token=token)
        subject = listed.user_id
    if kyc.SCOPE in allowed and subject is None:
        level = client.kyc(None, access_token=token)
        subject = level.subject
    if subject is None:
        granted = " ".join(allowed) or "none"
        raise exceptions.MalformedAnswer(
            f"nobody named; scopes: {granted}",
            endpoint="token",
            code="subject_unknown",
        )
    return _Person(subject, profile or Profile(id=subject), level, listed)


def _read_rest(
    client: ServiceClient,
    token: Secret,
    allowed: Scopes,
    person: _Person,
) -> None:
    """Read the level and the claims, if they are still missing, and verify the claims.

    A failure leaves the person signed in, with gates closed, unless it is about somebody else.
    """
    subject = person.subject
    try:
        if kyc.SCOPE in allowed and person.kyc is None:
            person.kyc = client.kyc(subject, access_token=token)
    except UNREAD as error:
        _note_unread(person, error)
    try:
        if claims.SCOPE in allowed:
            listed = person.listed
            if listed is None:
                listed = client.claims(subject, access_token=token)
            proof = key_sets.verify_answer(conf.application(), listed, subject=subject)
            person.claims = VerifiedAnswer(listed, proof)
    except UNREAD as error:
        _note_unread(person, error)


def _exchange(
    client: ServiceClient,
    request: AuthorizationRequest,
    code: str,
) -> TokenAnswer:
    """Exchange the code once, with the verifier that only this site knows (RFC 7636 §4.5)."""
    verifier = sealing.unseal(request, request, "code_verifier")
    return client.exchange_code(
        code=code,
        code_verifier=verifier,
        redirect_uri=request.redirect_uri,
    )


def _note_unread(person: _Person, error: exceptions.IdentityError) -> None:
    """Raise ``error`` again if it is about somebody else: another subject or environment."""
    if isinstance(error, MISMATCHES):
        raise error
    if getattr(error, "reason", None) in ABOUT_ANOTHER:
        raise error
    log_failure(LogEvent.SIGN_IN_UNREAD, error)
    person.unread = error.code
