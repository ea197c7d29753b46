"""Records for tests that start in the middle of an identity's life."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from django.contrib.auth.models import User
from django.utils import timezone

from django_identity.models import Consent, LinkedIdentity, LinkedVia, StoredClaim

LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)


def make_user(username: str = "ada", **fields: Any) -> User:
    return User.objects.create_user(username, password="a password", **fields)


def make_identity(user: User, *, subject: str = "subject-1", **fields: Any) -> LinkedIdentity:
    held = {
        "application": "default",
        "environment": "test",
        "consent": Consent.GRANTED,
        "consent_changed_at": LONG_AGO,
        "linked_via": LinkedVia.OAUTH,
        "kyc_level": "level_2",
        "kyc_status": "verified",
        "credential_expires_at": timezone.now() + timedelta(hours=24),
        **fields,
    }
    return LinkedIdentity.objects.create(user=user, subject=subject, **held)


def make_claim(
    identity: LinkedIdentity, claim_type: str = "age_over_18", value: Any = True, **fields: Any
) -> StoredClaim:
    held = {"provider": "KYC", "valid_until": timezone.now() + timedelta(hours=24), **fields}
    return StoredClaim.objects.create(identity=identity, claim_type=claim_type, value=value, **held)
