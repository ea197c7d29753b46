"""People in every state that a page knows, each with a session: for a site that runs."""

from datetime import datetime, timedelta
from typing import Any

from django.contrib.auth.hashers import make_password
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from django_identity.backends import BACKEND_PATH
from django_identity.models import AuthorizationRequest, Consent, LinkedIdentity, Purpose
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


def settle() -> dict[str, str]:
    """Put everybody into the database; returns each one's session key by name."""
    for move_in in (_proven, _run_out, _revoked, _abroad):
        move_in()
    _identity(_user("gozie", "Gozie", "Nwosu"), kyc_level="", credential_expires_at=None,
              kyc_status="")  # fmt: skip
    _identity(
        _user("dayo", "Dayo", "Bello"), consent=Consent.REVOKED, revoked_at=_in(days=-2),
        scopes=[], credential_issued_at=None, credential_expires_at=None,
    )  # fmt: skip
    kofi = make_identity_by_code(
        _user("kofi", "Kofi", "Asante"), subject="kofis-subject", connect_issued_at=_in(days=-40),
        kyc_provider="Verify Ltd", kyc_verified_at=_in(days=-40), kyc_said_at=_in(hours=-3),
        connect_person="Kofi A., k***@example.org",
    )  # fmt: skip
    LinkedIdentity.objects.filter(pk=kofi.pk).update(created_at=_in(days=-40))
    _user("efe", "Efe", "Okoro", password=make_password(PASSWORD))
    _user("nia", "Nia", "Owusu")
    by_identity = {"proven": "ada", "run_out": "bola", "revoked": "chidi", "abroad": "femi",
                   "unverified": "gozie"}  # fmt: skip
    by_password = {"withdrawn": "dayo", "by_code": "kofi", "unlinked": "efe", "newcomer": "nia"}
    return {
        **{state: session_of(name, BACKEND_PATH) for state, name in by_identity.items()},
        **{state: session_of(name, MODEL_BACKEND) for state, name in by_password.items()},
    }


def session_of(username: str, backend: str) -> str:
    """The session key of somebody who signed in by ``backend``."""
    browser = Client()
    browser.force_login(User.objects.get(username=username), backend=backend)
    return browser.cookies["sessionid"].value


def _proven() -> None:
    """Everything is proven: for 5 more hours by the service, for 20 by the vendor."""
    user = _user("ada", "Ada", "Obi")
    identity = _identity(user)
    soon, later = _in(hours=5, minutes=1), _in(hours=20, minutes=1)
    make_claim(identity, valid_until=soon, provider="Verify Ltd", issued_at=_in(days=-1))
    make_claim(identity, "country_resident", "NG", valid_until=soon, provider="Identity")
    make_claim(identity, "kyc_verified", {"verified": True}, valid_until=later)
    make_claim(identity, "unique_human", None, valid_until=None)
    make_grant(identity, scopes=SCOPES, refresh_expires_at=_in(days=29))
    for number, event_type in enumerate(("consent.granted", "claim.issued", "claim.issued")):
        at = _in(days=-18, minutes=number)
        make_event(identity, event_type, occurred_at=at, received_at=at)
    AuthorizationRequest.objects.create(
        state_digest="a digest", application="default", environment="test",
        purpose=Purpose.SIGN_IN, completed_by=user, next="/adults/", redirect_uri="/",
        expires_at=_in(minutes=10), outcome="completed",
    )  # fmt: skip


def _run_out() -> None:
    """Proofs that ran out, and a grant that only the person can renew."""
    identity = _identity(_user("bola", "Bola", "Ade"), credential_expires_at=_in(hours=-3))
    make_claim(identity, valid_until=_in(hours=-3))
    make_claim(identity, "country_resident", "NG", valid_until=_in(hours=-3))
    make_grant(identity, scopes=SCOPES, needs_reauthorization=True)


def _revoked() -> None:
    """Proofs that the service revoked."""
    identity = _identity(_user("chidi", "Chidi", "Eze"))
    make_claim(identity, revoked_at=_in(days=-1))
    make_claim(identity, "country_resident", "NG", revoked_at=_in(days=-1))


def _abroad() -> None:
    """Proven to live elsewhere, and verified at level 1."""
    identity = _identity(_user("femi", "Femi", "Mensah"), kyc_level="level_1")
    make_claim(identity)
    make_claim(identity, "country_resident", "GH")


def _in(**span: int) -> datetime:
    return timezone.now() + timedelta(**span)


def _user(username: str, first_name: str, last_name: str, *, password: str = "!") -> User:
    return User.objects.create(
        username=username, first_name=first_name, last_name=last_name, password=password,
        email=f"{username}@example.org",
    )  # fmt: skip


def _identity(user: User, **fields: Any) -> LinkedIdentity:
    held = {
        "subject": f"7d1f0c9e-{user.pk:04d}-4a57-9c57-0c6bd37f2b11", "scopes": SCOPES,
        "kyc_provider": "Verify Ltd", "kyc_verified_at": _in(days=-40),
        "signed_in_at": _in(days=-40), "kyc_said_at": _in(hours=-3),
        "credential_issued_at": _in(hours=-4), **fields,
    }  # fmt: skip
    identity = make_identity(user, **held)
    LinkedIdentity.objects.filter(pk=identity.pk).update(created_at=_in(days=-40))
    return identity
