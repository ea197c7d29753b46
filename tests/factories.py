"""Records for tests that start in the middle of an identity's life."""

from datetime import UTC, datetime, timedelta
from typing import Any

from django.contrib.auth.models import User
from django.utils import timezone

from django_identity.lifecycle.ground import sealing
from django_identity.models import (
    Consent,
    EventOutcome,
    LinkedIdentity,
    LinkedVia,
    StoredClaim,
    TokenGrant,
    WebhookEvent,
    digest,
)
from django_identity.secrets import Secret

LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)
AN_HOUR_AGO = timezone.now() - timedelta(hours=1)
# One moment for all rows of a run, so that the ends of two stories can be compared.
JUST_NOW = timezone.now()


def make_user(username: str = "ada", **fields: Any) -> User:
    return User.objects.create_user(username, password="a password", **fields)


def again(user: User) -> User:
    """The user as the next request loads them: gates remember what they read on an instance."""
    return User.objects.get(pk=user.pk)


def make_identity(
    user: User,
    *,
    subject: str = "subject-1",
    account_made: bool = True,
    **fields: Any,
) -> LinkedIdentity:
    held = {
        "environment": "test",
        "consent": Consent.GRANTED,
        "linked_via": LinkedVia.OAUTH,
        "made_account": str(user.pk) if account_made else "",
        "scopes": ["claims:read"],
        "kyc_level": "level_2",
        "kyc_status": "verified",
        "kyc_said_at": JUST_NOW,
        "credential_expires_at": timezone.now() + timedelta(hours=24),
        **fields,
    }
    return LinkedIdentity.objects.create(user=user, subject=subject, **held)


def make_identity_by_code(user: User, **fields: Any) -> LinkedIdentity:
    """One that a Connect code alone stands behind: a level, no proofs, no tokens."""
    held = {
        "linked_via": LinkedVia.CONNECT,
        "account_made": False,
        "scopes": ["profile:basic", "kyc:status"],
        "connect_issued_at": timezone.now(),
        "credential_expires_at": None,
        **fields,
    }
    return make_identity(user, **held)


def change_each(**columns: Any) -> None:
    """Change all identities one by one, as ``update`` cannot."""
    for identity in LinkedIdentity.objects.all():
        identity.set_columns(columns)
        identity.save(update_fields=columns)


def make_claim(
    identity: LinkedIdentity,
    claim_type: str = "age_over_18",
    value: Any = True,
    **fields: Any,
) -> StoredClaim:
    held = {
        "provider": "KYC",
        "valid_until": timezone.now() + timedelta(hours=24),
        **fields,
    }
    return StoredClaim.objects.create(
        identity=identity,
        claim_type=claim_type,
        value=value,
        **held,
    )


def make_grant(
    identity: LinkedIdentity,
    *,
    access_token: str = "at-0",
    refresh_token: str = "rt-0",
    **fields: Any,
) -> TokenGrant:
    """Tokens that are live: pass ``access_expires_at`` for one that is not."""
    now = timezone.now()
    held = {
        "access_token": sealing.seal(identity, Secret(access_token), "access_token"),
        "refresh_token": sealing.seal(identity, Secret(refresh_token), "refresh_token"),
        "access_expires_at": now + timedelta(hours=1),
        "refresh_expires_at": now + timedelta(days=30),
        **fields,
    }
    return TokenGrant.objects.create(identity=identity, **held)


def make_event(
    identity: LinkedIdentity,
    event_type: str,
    **fields: Any,
) -> WebhookEvent:
    """An event about ``identity``, applied a minute ago."""
    event_id = f"event-{WebhookEvent.objects.count()}"
    a_minute_ago = timezone.now() - timedelta(minutes=1)
    held = {
        "event_id": event_id,
        "event_digest": digest(identity.environment, event_id),
        "occurred_at": a_minute_ago,
        "received_at": a_minute_ago,
        "subject": identity.subject,
        "subject_digest": identity.subject_digest,
        "payload": {"user_id": identity.subject},
        "outcome": EventOutcome.APPLIED,
        **fields,
    }
    return WebhookEvent.objects.create(event_type=event_type, **held)


#: Nothing was read of the verification, which the person may not have begun.
UNREAD: dict[str, Any] = {
    "kyc_status": "",
    "kyc_level": "",
    "scopes": ["profile:read", "kyc:read", "claims:read"],
}
#: Of the answer's list, and of no credential.
LISTED: dict[str, Any] = {"valid_until": None, "value": None}
#: In what situation one person can be: the fields of the identity, and its claim, if there is one.
SITUATIONS: dict[str, tuple[dict[str, Any], dict[str, Any] | None]] = {
    "proven": ({}, {}),
    "by code": ({"linked_via": LinkedVia.CONNECT, "account_made": False}, None),
    "revoked": ({"consent": Consent.REVOKED, "revoked_at": LONG_AGO}, {}),
    "of the other environment": ({"environment": "live"}, {}),
    "of a lower level": ({"kyc_level": "level_1"}, {}),
    "rejected": ({"kyc_status": "rejected"}, None),
    "not verified": (UNREAD, None),
    "not read": (UNREAD | {"last_error": "service_timeout"}, None),
    "without the scopes": (UNREAD | {"scopes": ["profile:read"]}, None),
    "of a claim that ran out": ({}, {"valid_until": AN_HOUR_AGO}),
    "of a revoked claim": ({}, {"revoked_at": LONG_AGO}),
    "of a listed claim": ({}, LISTED),
}


def people() -> dict[str, User]:
    """One person in each situation, by its name."""
    found = {}
    for name, (fields, claim) in SITUATIONS.items():
        found[name] = make_user(name)
        identity = make_identity(found[name], subject=name, **fields)
        if claim is not None:
            make_claim(identity, **claim)
    return found
