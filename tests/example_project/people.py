"""People in every state that a page or an operator knows: for a site that runs."""

from datetime import datetime, timedelta
from typing import Any

from django.contrib.auth.models import Permission, User
from django.test import Client
from django.utils import timezone

from django_identity.backends import BACKEND_PATH
from django_identity.models import (
    AuthorizationRequest,
    Consent,
    ErasureReceipt,
    EventOutcome,
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
#: Nobody at the service that the other tests sign in with.
REFETCHABLE = "0a1b2c3d-operated-by-hand"
#: The person who cannot pass the age gate, because the service has not answered for hours.
CLOSED_OUT = "hadiza"


def settle() -> dict[str, str]:
    """Put everybody into the database; returns each one's session key by state."""
    users = {state: _user(name) for state, (name, _) in PEOPLE.items()}
    soon = _in(hours=5, minutes=1)
    _proven(users["proven"], soon)
    # A grant that only the person can renew.
    run_out = _identity(users["run_out"], credential_expires_at=_in(hours=-3))
    _claims(run_out, valid_until=_in(hours=-3))
    make_grant(run_out, scopes=SCOPES, needs_reauthorization=True)
    _claims(_identity(users["revoked"]), revoked_at=_in(days=-1))
    _claims(_identity(users["abroad"], kyc_level="level_1"), country="GH")
    no_credential = {"credential_issued_at": None, "credential_expires_at": None}
    never = {"kyc_level": "", "kyc_status": "", "credential_expires_at": None}
    _identity(users["unverified"], **never)
    _identity(users["rejected"], **{**never, "kyc_status": "rejected"})
    # The site has another key of the issuer: no credential passes its check.
    failed = {"last_error": "credential_rejected", "refetch_failures": 1}
    _identity(users["unverifiable"], **failed, **no_credential)
    ended = {"consent": Consent.REVOKED, "revoked_at": _in(days=-2), "scopes": []}
    _identity(users["withdrawn"], **ended, **no_credential)
    make_identity_by_code(
        users["by_code"],
        subject="kofis-subject",
        connect_issued_at=_in(days=-40),
        kyc_provider="Verify Ltd",
        kyc_verified_at=_in(days=-40),
        kyc_said_at=_in(hours=-3),
        connect_person="Kofi A., k***@example.org",
    )
    LinkedIdentity.objects.update(created_at=_in(days=-40))
    # Somebody who is verified, and whom the service does not call 18 or older.
    child = _identity(users["child"])
    make_claim(child, "kyc_verified", {"verified": True}, valid_until=soon)
    make_claim(child, "country_resident", "NG", valid_until=soon)
    users["unlinked"].set_password(PASSWORD)
    users["unlinked"].save()
    return {
        state: _session_of(users[state].username, backend)
        for state, (_, backend) in PEOPLE.items()
    }


def settle_operators() -> dict[str, str]:
    """Fill the records of the admin and return the operators' session keys by name."""
    # Whom the service knows, so that a re-fetch works.
    known = make_identity(_user("Imani"), subject=REFETCHABLE, scopes=SCOPES)
    make_claim(known, proof_hash="b94d27b9934d3e08a52e52d7da7dabfac484efe3")
    make_grant(known)
    _closed_out()
    make_claim(make_identity(_user("Jide"), subject="type-me-to-erase", scopes=SCOPES))
    # Whose event was emptied by the purge.
    by_code = make_identity_by_code(_user("Musa"), subject="by-code-alone")
    make_event(by_code, "kyc.verified", payload=None)
    # Whose erasure the site's own code holds up.
    ErasureReceipt.objects.create(
        requested_at=_in(hours=-5),
        attempts=3,
        next_attempt_at=_in(hours=1),
        error="BillingSystemDown",
        account=str(_user("Kelechi").pk),
    )
    counts = {"storedclaim": 4, "webhookevent": 12, "linkedidentity": 1}
    nine_days = {"requested_at": _in(days=-9), "erased_at": _in(days=-9)}
    ErasureReceipt.objects.create(**nine_days, counts=counts)
    User.objects.create_superuser("operator", email="operator@example.org")
    # May look at everything, and do nothing.
    looker = User.objects.create_user("looker", is_staff=True)
    looker.user_permissions.set(Permission.objects.filter(codename__startswith="view_"))
    return {name: _session_of(name, MODEL_BACKEND) for name in ("operator", "looker")}


def _session_of(username: str, backend: str) -> str:
    browser = Client()
    browser.force_login(User.objects.get(username=username), backend=backend)
    return browser.cookies["sessionid"].value


def _proven(user: User, soon: datetime) -> None:
    """Everything is proven: for 5 more hours by the service, for 20 by the vendor."""
    identity = _identity(user)
    of_age = {"valid_until": soon, "provider": "Verify Ltd", "issued_at": _in(days=-1)}
    make_claim(identity, **of_age)
    country = {"valid_until": soon, "provider": "Identity"}
    make_claim(identity, "country_resident", "NG", **country)
    later = _in(hours=20, minutes=1)
    make_claim(identity, "kyc_verified", {"verified": True}, valid_until=later)
    make_claim(identity, "unique_human", None, valid_until=None)
    make_grant(identity, scopes=SCOPES, refresh_expires_at=_in(days=29))
    types = ("consent.granted", "claim.issued", "claim.issued")
    for number, event_type in enumerate(types):
        at = _in(days=-18, minutes=number)
        make_event(identity, event_type, occurred_at=at, received_at=at)
    _signed_in(user, "a digest", next="/adults/", expires_at=_in(minutes=10))


def _closed_out() -> None:
    user, ran_out = _user(CLOSED_OUT.title()), _in(hours=-2, minutes=-4)
    identity = make_identity(
        user,
        subject="5e0f6a52-9f0e-4f9f-8f3c-5f0a4c0f1d77",
        scopes=SCOPES,
        signed_in_at=_in(hours=-2),
        credential_issued_at=_in(hours=-26),
        credential_expires_at=ran_out,
        refetch_due_at=_in(minutes=48),
        refetch_failures=7,
        last_error="service_unavailable",
    )
    LinkedIdentity.objects.filter(pk=identity.pk).update(created_at=_in(days=-12))
    proof = {"proof_hash": "9f86d081884c7d659a2feaa0c55ad015", "valid_until": ran_out}
    make_claim(identity, **proof)
    make_claim(identity, "country_resident", "NG", valid_until=ran_out)
    make_claim(identity, "kyc_verified", {"verified": True}, valid_until=ran_out)
    make_grant(identity, refresh_expires_at=_in(days=3, hours=4))
    make_event(
        identity,
        "kyc.verified",
        payload={
            "event_type": "kyc.verified",
            "event_id": "evt_01",
            "timestamp": "2026-11-20T10:00:00Z",
            "data": {
                "user_id": identity.subject,
                "kyc_level": "level_2",
                "status": "verified",
                "provider": "<b>Verify</b> & Söhne",
            },
        },
    )
    failed = {"outcome": EventOutcome.FAILED, "attempts": 8, "error": "TimeoutError"}
    make_event(identity, "claim.issued", **failed)
    make_event(identity, "consent.granted", outcome=EventOutcome.SUPERSEDED)
    for hours in (2, 30, 200):
        at = {"expires_at": timezone.now(), "consumed_at": _in(hours=-hours)}
        _signed_in(user, f"operated-{hours}", **at, browser_digest="b")


def _signed_in(user: User, state: str, **fields: Any) -> None:
    AuthorizationRequest.objects.create(
        state_digest=state,
        environment="test",
        purpose=Purpose.SIGN_IN,
        completed_by=user,
        redirect_uri="/",
        outcome="completed",
        **fields,
    )


def _claims(identity: LinkedIdentity, *, country: str = "NG", **fields: Any) -> None:
    make_claim(identity, **fields)
    make_claim(identity, "country_resident", country, **fields)


def _in(**span: int) -> datetime:
    return timezone.now() + timedelta(**span)


def _user(name: str) -> User:
    first_name, _, last_name = name.partition(" ")
    username = first_name.lower()
    return User.objects.create(
        username=username,
        first_name=first_name,
        last_name=last_name,
        password="!",
        email=f"{username}@example.org",
    )


def _identity(user: User, **fields: Any) -> LinkedIdentity:
    held = {
        "subject": f"7d1f0c9e-{user.pk:04d}-4a57-9c57-0c6bd37f2b11",
        "scopes": SCOPES,
        "kyc_provider": "Verify Ltd",
        "kyc_verified_at": _in(days=-40),
        "signed_in_at": _in(days=-40),
        "kyc_said_at": _in(hours=-3),
        "credential_issued_at": _in(hours=-4),
        **fields,
    }
    return make_identity(user, **held)
