"""People in every state that a page knows, each with a session: for a site that runs."""

from collections.abc import Callable
from datetime import timedelta

from django.contrib.auth.hashers import make_password
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from django_identity.backends import BACKEND_PATH
from django_identity.models import (
    AuthorizationRequest,
    Consent,
    EventOutcome,
    LinkedIdentity,
    LinkedVia,
    Purpose,
    TokenGrant,
    WebhookEvent,
)
from tests.factories import make_claim, make_identity

MODEL_BACKEND = "django.contrib.auth.backends.ModelBackend"
PASSWORD = "a password for tests alone"
SCOPES = ["profile:read", "kyc:read", "claims:read"]


def settle() -> dict[str, str]:
    """Put everybody into the database; returns each one's session key by name."""
    return {name: move_in() for name, move_in in PEOPLE.items()}


def _proven() -> str:
    """Everything is proven: for 5 more hours by the service, for 20 by the vendor."""
    user = _user("ada", "Ada", "Obi")
    identity = _identity(user)
    soon, later = _in(hours=5, minutes=1), _in(hours=20, minutes=1)
    make_claim(identity, valid_until=soon, provider="Verify Ltd", issued_at=_in(days=-1))
    make_claim(identity, "country_resident", "NG", valid_until=soon, provider="Identity")
    make_claim(identity, "kyc_verified", {"verified": True}, valid_until=later)
    make_claim(identity, "unique_human", None, valid_until=None)
    _grant(identity)
    for number, event_type in enumerate(("consent.granted", "claim.issued", "claim.issued")):
        WebhookEvent.objects.create(
            application="default",
            event_id=f"e{number}",
            event_digest=f"digest-{number}",
            event_type=event_type,
            occurred_at=_in(days=-18, minutes=number),
            received_at=_in(days=-18, minutes=number),
            subject=identity.subject,
            subject_digest=identity.subject_digest,
            payload={"user_id": identity.subject, "claim_type": "age_over_18"},
            outcome=EventOutcome.APPLIED,
        )
    AuthorizationRequest.objects.create(
        state_digest="a digest",
        application="default",
        environment="test",
        purpose=Purpose.SIGN_IN,
        completed_by=user,
        next="/adults/",
        redirect_uri="/",
        expires_at=_in(minutes=10),
        outcome="completed",
    )
    return _session(user, BACKEND_PATH)


def _run_out() -> str:
    """Proofs that ran out, and a grant that only the person can renew."""
    user = _user("bola", "Bola", "Ade")
    identity = _identity(user, credential_expires_at=_in(hours=-3))
    make_claim(identity, valid_until=_in(hours=-3))
    make_claim(identity, "country_resident", "NG", valid_until=_in(hours=-3))
    _grant(identity, needs_reauthorization=True)
    return _session(user, BACKEND_PATH)


def _revoked() -> str:
    """Proofs that the service revoked."""
    user = _user("chidi", "Chidi", "Eze")
    identity = _identity(user)
    make_claim(identity, revoked_at=_in(days=-1))
    make_claim(identity, "country_resident", "NG", revoked_at=_in(days=-1))
    return _session(user, BACKEND_PATH)


def _withdrawn() -> str:
    """Consent taken back; signed in with a password."""
    user = _user("dayo", "Dayo", "Bello")
    _identity(
        user, consent=Consent.REVOKED, revoked_at=_in(days=-2), scopes=[],
        credential_issued_at=None, credential_expires_at=None,
    )  # fmt: skip
    return _session(user, MODEL_BACKEND)


def _by_code() -> str:
    """Verified with a Connect code alone: a level, no proofs, no grant."""
    user = _user("kofi", "Kofi", "Asante")
    _identity(
        user, linked_via=LinkedVia.CONNECT, scopes=["profile:basic", "kyc:status"],
        connect_issued_at=_in(days=-40), credential_issued_at=None,
        credential_expires_at=None, subject="kofis-subject",
        connect_person="Kofi A., k***@example.org",
    )  # fmt: skip
    return _session(user, MODEL_BACKEND)


def _unlinked() -> str:
    """An account with a password and no identity."""
    user = _user("efe", "Efe", "Okoro", password=make_password(PASSWORD))
    return _session(user, MODEL_BACKEND)


def _newcomer() -> str:
    """Another account without an identity."""
    return _session(_user("nia", "Nia", "Owusu"), MODEL_BACKEND)


def _abroad() -> str:
    """Proven to live elsewhere, and verified at level 1."""
    user = _user("femi", "Femi", "Mensah")
    identity = _identity(user, kyc_level="level_1")
    make_claim(identity)
    make_claim(identity, "country_resident", "GH")
    return _session(user, BACKEND_PATH)


def _unverified() -> str:
    """Linked, and nothing is verified yet."""
    user = _user("gozie", "Gozie", "Nwosu")
    _identity(user, kyc_level="", kyc_status="", credential_expires_at=None)
    return _session(user, BACKEND_PATH)


PEOPLE: dict[str, Callable[[], str]] = {
    "proven": _proven,
    "run_out": _run_out,
    "revoked": _revoked,
    "withdrawn": _withdrawn,
    "by_code": _by_code,
    "unlinked": _unlinked,
    "newcomer": _newcomer,
    "abroad": _abroad,
    "unverified": _unverified,
}


def _in(**span: int) -> object:
    return timezone.now() + timedelta(**span)


def _user(username: str, first_name: str, last_name: str, *, password: str = "!") -> User:
    return User.objects.create(
        username=username,
        first_name=first_name,
        last_name=last_name,
        email=f"{username}@example.org",
        password=password,
    )


def _identity(user: User, **fields: object) -> LinkedIdentity:
    held = {
        "subject": f"7d1f0c9e-{user.pk:04d}-4a57-9c57-0c6bd37f2b11",
        "scopes": SCOPES,
        "kyc_provider": "Verify Ltd",
        "kyc_verified_at": _in(days=-40),
        "kyc_said_at": _in(hours=-3),
        "credential_issued_at": _in(hours=-4),
        **fields,
    }
    identity = make_identity(user, **held)
    LinkedIdentity.objects.filter(pk=identity.pk).update(created_at=_in(days=-40))
    return identity


def _grant(identity: LinkedIdentity, **fields: object) -> None:
    held = {
        "scopes": SCOPES,
        "access_token": "sealed",
        "access_expires_at": _in(minutes=40),
        "refresh_expires_at": _in(days=29),
        **fields,
    }
    TokenGrant.objects.create(identity=identity, **held)


def _session(user: User, backend: str) -> str:
    browser = Client()
    browser.force_login(user, backend=backend)
    return browser.cookies["sessionid"].value
