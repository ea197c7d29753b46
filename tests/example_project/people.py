"""People in every state that a page knows, each with a session: for a site that runs."""

from datetime import datetime, timedelta
from typing import Any

from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from django_identity.backends import BACKEND_PATH
from django_identity.models import (
    AuthorizationRequest,
    Consent,
    LinkedIdentity,
    Purpose,
)
from tests.factories import (
    make_claim,
    make_event,
    make_grant,
    make_identity,
    make_identity_by_code,
)

MODEL_BACKEND = "django.contrib.auth.backends.ModelBackend"
PASSWORD = "a password for tests alone"
SCOPES = ["profile:read", "kyc:read", "claims:read"]
#: State -> who is in it, and how they signed in.
PEOPLE = {
    "proven": ("Ada Obi", BACKEND_PATH),
    "run_out": ("Bola Ade", BACKEND_PATH),
    "revoked": ("Chidi Eze", BACKEND_PATH),
    "abroad": ("Femi Mensah", BACKEND_PATH),
    "unverified": ("Gozie Nwosu", BACKEND_PATH),
    "withdrawn": ("Dayo Bello", MODEL_BACKEND),
    "by_code": ("Kofi Asante", MODEL_BACKEND),
    "unlinked": ("Efe Okoro", MODEL_BACKEND),
    "newcomer": ("Nia Owusu", MODEL_BACKEND),
    "child": ("Chika Okeke", BACKEND_PATH),
    "rejected": ("Rotimi Alade", BACKEND_PATH),
    "unverifiable": ("Uche Nnadi", BACKEND_PATH),
}


def settle() -> dict[str, str]:
    """Put everybody into the database; returns each one's session key by state."""
    users = {state: _user(*name.split()) for state, (name, _) in PEOPLE.items()}
    _proven(users["proven"])
    # A grant that only the person can renew.
    run_out = _identity(users["run_out"], credential_expires_at=_in(hours=-3))
    _claims(run_out, valid_until=_in(hours=-3))
    make_grant(run_out, scopes=SCOPES, needs_reauthorization=True)
    _claims(_identity(users["revoked"]), revoked_at=_in(days=-1))
    _claims(_identity(users["abroad"], kyc_level="level_1"), country="GH")
    never = {"kyc_level": "", "kyc_status": "", "credential_expires_at": None}
    _identity(users["unverified"], **never)
    _identity(
        users["withdrawn"], consent=Consent.REVOKED, revoked_at=_in(days=-2), scopes=[],
        credential_issued_at=None, credential_expires_at=None,
    )  # fmt: skip
    make_identity_by_code(
        users["by_code"], subject="kofis-subject", connect_issued_at=_in(days=-40),
        kyc_provider="Verify Ltd", kyc_verified_at=_in(days=-40), kyc_said_at=_in(hours=-3),
        connect_person="Kofi A., k***@example.org",
    )  # fmt: skip
    LinkedIdentity.objects.update(created_at=_in(days=-40))
    _child(users["child"])
    _identity(users["rejected"], **{**never, "kyc_status": "rejected"})
    # The site has another key of the issuer: no credential passes its check.
    _identity(
        users["unverifiable"], last_error="credential_rejected", refetch_failures=1,
        credential_issued_at=None, credential_expires_at=None,
    )  # fmt: skip
    users["unlinked"].set_password(PASSWORD)
    users["unlinked"].save()
    return {
        state: session_of(users[state].username, backend)
        for state, (_, backend) in PEOPLE.items()
    }


def session_of(username: str, backend: str) -> str:
    """The session key of somebody who signed in by ``backend``."""
    browser = Client()
    browser.force_login(User.objects.get(username=username), backend=backend)
    return browser.cookies["sessionid"].value


def _proven(user: User) -> None:
    """Everything is proven: for 5 more hours by the service, for 20 by the vendor."""
    identity = _identity(user)
    soon, later = _in(hours=5, minutes=1), _in(hours=20, minutes=1)
    of_age = {"valid_until": soon, "provider": "Verify Ltd", "issued_at": _in(days=-1)}
    make_claim(identity, **of_age)
    country = {"valid_until": soon, "provider": "Identity"}
    make_claim(identity, "country_resident", "NG", **country)
    make_claim(identity, "kyc_verified", {"verified": True}, valid_until=later)
    make_claim(identity, "unique_human", None, valid_until=None)
    make_grant(identity, scopes=SCOPES, refresh_expires_at=_in(days=29))
    types = ("consent.granted", "claim.issued", "claim.issued")
    for number, event_type in enumerate(types):
        at = _in(days=-18, minutes=number)
        make_event(identity, event_type, occurred_at=at, received_at=at)
    AuthorizationRequest.objects.create(
        state_digest="a digest", environment="test",
        purpose=Purpose.SIGN_IN, completed_by=user, next="/adults/", redirect_uri="/",
        expires_at=_in(minutes=10), outcome="completed",
    )  # fmt: skip


def _child(user: User) -> None:
    """Somebody who is verified, and whom the service does not call 18 or older."""
    identity, soon = _identity(user), _in(hours=5, minutes=1)
    make_claim(identity, "kyc_verified", {"verified": True}, valid_until=soon)
    make_claim(identity, "country_resident", "NG", valid_until=soon)


def _claims(identity: LinkedIdentity, *, country: str = "NG", **fields: Any) -> None:
    make_claim(identity, **fields)
    make_claim(identity, "country_resident", country, **fields)


def _in(**span: int) -> datetime:
    return timezone.now() + timedelta(**span)


def _user(first_name: str, last_name: str) -> User:
    username = first_name.lower()
    return User.objects.create(
        username=username, first_name=first_name, last_name=last_name, password="!",
        email=f"{username}@example.org",
    )  # fmt: skip


def _identity(user: User, **fields: Any) -> LinkedIdentity:
    held = {
        "subject": f"7d1f0c9e-{user.pk:04d}-4a57-9c57-0c6bd37f2b11", "scopes": SCOPES,
        "kyc_provider": "Verify Ltd", "kyc_verified_at": _in(days=-40),
        "signed_in_at": _in(days=-40), "kyc_said_at": _in(hours=-3),
        "credential_issued_at": _in(hours=-4), **fields,
    }  # fmt: skip
    return make_identity(user, **held)
