"""An operator with a session, and records of every kind for the admin to show."""

from datetime import timedelta

from django.contrib.auth.models import Permission, User
from django.utils import timezone

from django_identity.models import (
    AuthorizationRequest,
    ErasureReceipt,
    EventOutcome,
    LinkedIdentity,
    Purpose,
)
from tests.example_project.people import MODEL_BACKEND, SCOPES, session_of
from tests.factories import (
    make_claim,
    make_event,
    make_grant,
    make_identity,
    make_identity_by_code,
)

#: Nobody at the service that the other tests sign in with.
REFETCHABLE = "0a1b2c3d-operated-by-hand"
#: The person who cannot pass the age gate, in the test of a new operator.
CLOSED_OUT = "hadiza"


def settle_operators() -> dict[str, str]:
    """Fill the records and return the operator's session key by name."""
    _refetchable()
    _closed_out()
    pending = _to_erase()
    _by_code()
    _receipts(pending)
    User.objects.create_superuser("operator", email="operator@example.org")
    # May look at everything, and do nothing.
    looker = User.objects.create_user("looker", is_staff=True)
    looker.user_permissions.set(Permission.objects.filter(codename__startswith="view_"))
    return {name: session_of(name, MODEL_BACKEND) for name in ("operator", "looker")}


def _refetchable() -> None:
    """Somebody whom the service knows, so that a re-fetch works."""
    identity = make_identity(_user("imani"), subject=REFETCHABLE, scopes=SCOPES)
    make_claim(identity, proof_hash="b94d27b9934d3e08a52e52d7da7dabfac484efe3")
    make_grant(identity)


def _closed_out() -> None:
    """Somebody whose proof ran out, because the service has not answered for hours."""
    user, now = _user(CLOSED_OUT), timezone.now()
    identity = make_identity(
        user, subject="5e0f6a52-9f0e-4f9f-8f3c-5f0a4c0f1d77", scopes=SCOPES,
        signed_in_at=now - timedelta(hours=2), credential_issued_at=now - timedelta(hours=26),
        credential_expires_at=now - timedelta(hours=2, minutes=4),
        refetch_due_at=now + timedelta(minutes=48), refetch_failures=7,
        last_error="service_unavailable",
    )  # fmt: skip
    LinkedIdentity.objects.filter(pk=identity.pk).update(
        created_at=now - timedelta(days=12)
    )
    ran_out = now - timedelta(hours=2, minutes=4)
    make_claim(
        identity, valid_until=ran_out, proof_hash="9f86d081884c7d659a2feaa0c55ad015"
    )
    make_claim(identity, "country_resident", "NG", valid_until=ran_out)
    make_claim(identity, "kyc_verified", {"verified": True}, valid_until=ran_out)
    make_grant(identity, refresh_expires_at=now + timedelta(days=3, hours=4))
    make_event(identity, "kyc.verified", payload={
        "event_type": "kyc.verified", "event_id": "evt_01", "timestamp": "2026-11-20T10:00:00Z",
        "data": {"user_id": identity.subject, "kyc_level": "level_2", "status": "verified",
                 "provider": "<b>Verify</b> & Söhne"},
    })  # fmt: skip
    make_event(identity, "claim.issued", outcome=EventOutcome.FAILED, attempts=8,
               error="TimeoutError")  # fmt: skip
    make_event(identity, "consent.granted", outcome=EventOutcome.SUPERSEDED)
    for hours in (2, 30, 200):
        AuthorizationRequest.objects.create(
            state_digest=f"operated-{hours}", browser_digest="b", environment="test",
            purpose=Purpose.SIGN_IN, completed_by=user, redirect_uri="/",
            expires_at=now, consumed_at=now - timedelta(hours=hours), outcome="completed",
        )  # fmt: skip


def _to_erase() -> User:
    """Somebody to erase, and somebody whose erasure the site's own code holds up."""
    make_claim(make_identity(_user("jide"), subject="type-me-to-erase", scopes=SCOPES))
    return _user("kelechi")


def _by_code() -> None:
    """Somebody who came with a Connect code, and whose event was emptied by the purge."""
    identity = make_identity_by_code(_user("musa"), subject="by-code-alone")
    make_event(identity, "kyc.verified", payload=None)


def _receipts(pending: User) -> None:
    now = timezone.now()
    ErasureReceipt.objects.create(
        requested_at=now - timedelta(hours=5), attempts=3,
        next_attempt_at=now + timedelta(hours=1), error="BillingSystemDown",
        account=str(pending.pk),
    )  # fmt: skip
    ErasureReceipt.objects.create(
        requested_at=now - timedelta(days=9),
        erased_at=now - timedelta(days=9),
        counts={"storedclaim": 4, "webhookevent": 12, "linkedidentity": 1},
    )  # fmt: skip


def _user(username: str) -> User:
    return User.objects.create(
        username=username, email=f"{username}@example.org", first_name=username.title()
    )
