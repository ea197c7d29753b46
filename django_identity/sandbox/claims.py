"""Claims: issued after verification, revoked by the person or with the verification."""

import hashlib
import json
import secrets
from datetime import date, datetime, timedelta
from typing import Any

from django.db import transaction

from django_identity.sandbox import clock
from django_identity.sandbox.models import Claim, User

SERVICE_NAME = "Sandbox Identity"
KYC_VENDOR = "Sandbox KYC"
YEARLY = timedelta(days=365)

KYC_VERIFIED = "kyc_verified"
AGE_OVER_18 = "age_over_18"
COUNTRY_RESIDENT = "country_resident"
UNIQUE_HUMAN = "unique_human"


@transaction.atomic
def issue_all(user: User) -> list[Claim]:
    """Issue every claim that a successful verification of ``user`` proves, anew if revoked."""
    now = clock.now().replace(microsecond=0)
    kyc_value = {
        "verified": True,
        "provider": KYC_VENDOR,
        "issued_at": clock.timestamp(now),
        "expires_at": clock.timestamp(now + YEARLY),
    }
    issued = [_issue(user, KYC_VERIFIED, KYC_VENDOR, kyc_value, now, now + YEARLY)]
    if _is_adult(user.date_of_birth, now.date()):
        issued.append(_issue(user, AGE_OVER_18, SERVICE_NAME, True, now, None))
    issued.append(_issue(user, COUNTRY_RESIDENT, SERVICE_NAME, user.country, now, now + YEARLY))
    issued.append(_issue(user, UNIQUE_HUMAN, KYC_VENDOR, True, now, None))
    return issued


def listed(user: User) -> list[Claim]:
    """Return all claims of ``user``, the revoked ones included."""
    return list(Claim.objects.filter(user=user))


def active(user: User) -> list[Claim]:
    """Return the claims of ``user`` that are neither revoked nor past their own expiry."""
    now = clock.now()
    return [
        claim
        for claim in listed(user)
        if not claim.revoked and (claim.expires_at is None or claim.expires_at > now)
    ]


def revoke(user: User, claim_type: str) -> bool:
    """Revoke one claim; return whether there was an active one."""
    active_claim = Claim.objects.filter(user=user, claim_type=claim_type, revoked=False)
    return bool(active_claim.update(revoked=True))


def revoke_all(user: User) -> None:
    """Revoke every claim, as when the verification underneath is invalidated."""
    Claim.objects.filter(user=user, revoked=False).update(revoked=True)


def _issue(
    user: User,
    claim_type: str,
    provider: str,
    value: Any,
    issued_at: datetime,
    expires_at: datetime | None,
) -> Claim:
    """Store one claim with a salted digest of its content as proof."""
    content = json.dumps([secrets.token_hex(16), user.subject, claim_type, provider, value])
    claim, _created = Claim.objects.update_or_create(
        user=user,
        claim_type=claim_type,
        defaults={
            "provider": provider,
            "value": value,
            "proof_hash": hashlib.sha256(content.encode()).hexdigest(),
            "issued_at": issued_at,
            "expires_at": expires_at,
            "revoked": False,
        },
    )
    return claim


def _is_adult(date_of_birth: date, today: date) -> bool:
    """Return whether the eighteenth birthday has come; 29 February counts from 1 March."""
    birthday = (today.month, today.day) >= (date_of_birth.month, date_of_birth.day)
    return today.year - date_of_birth.year - (not birthday) >= 18
