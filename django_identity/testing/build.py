"""Linked identities with open gates, for tests of a site's views.

The function only writes to the database. If the proof itself matters, sign a person in at the
sandbox.
"""

import secrets
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from django.contrib.auth.models import AbstractBaseUser
from django.utils import timezone

from django_identity import conf
from django_identity.models import Consent, LinkedIdentity, LinkedVia

LIFETIME = timedelta(hours=24)
ADULT: Mapping[str, Any] = {"age_over_18": True}


def build_identity(
    user: AbstractBaseUser,
    *,
    claims: Mapping[str, Any] = ADULT,
    kyc_level: str = "level_2",
    **fields: Any,
) -> LinkedIdentity:
    """Link ``user``: consent granted, verified at ``kyc_level``, ``claims`` valid for 24 hours.

    ``claims``: claim name -> value. ``fields``: columns of ``LinkedIdentity`` with other values.
    """
    now = timezone.now()
    columns: dict[str, Any] = {
        "environment": conf.application().environment,
        "subject": f"built-{secrets.token_hex(8)}",
        "consent": Consent.GRANTED,
        "signed_in_at": now,
        "linked_via": LinkedVia.OAUTH,
        "scopes": list(conf.application().scopes),
        "credential_expires_at": now + LIFETIME,
    }
    if kyc_level:
        columns |= {
            "kyc_level": kyc_level,
            "kyc_status": "verified",
            "kyc_verified_at": now,
            "kyc_said_at": now,
        }
    columns |= fields
    identity = LinkedIdentity.objects.create(user_id=user.pk, **columns)
    proven = {"provider": "Test", "issued_at": now, "valid_until": now + LIFETIME}
    for name, value in claims.items():
        identity.claims.create(claim_type=name, value=value, **proven)
    return identity
