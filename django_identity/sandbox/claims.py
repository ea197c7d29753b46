"""Claims: issued after verification, revoked by the person or with the verification."""

import hashlib
import json
import secrets
from collections.abc import Iterable
from datetime import date, datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import Q

from django_identity.sandbox import clock
from django_identity.sandbox.errors import Invalid
from django_identity.sandbox.events.event import EventType, announce
from django_identity.sandbox.models import Claim, User

SERVICE_NAME = "Sandbox Identity"
KYC_VENDOR = "Sandbox KYC"
YEARLY = timedelta(days=365)
AGE_OVER_18 = "age_over_18"
COUNTRY_RESIDENT = "country_resident"


@transaction.atomic
def issue_all(user: User) -> None:
    """Issue and announce every claim that the verification of ``user`` proves, anew if revoked."""
    for claim_type in _proofs(user, clock.now()):
        _issue(user, claim_type)


@transaction.atomic
def issue(user: User, claim_type: str) -> Claim:
    """Issue and announce one claim, anew if it is revoked.

    Raises:
        Invalid: ``user`` is not verified, or the verification does not prove the claim.
    """
    if not user.is_verified or claim_type not in _proofs(user, clock.now()):
        raise Invalid("The person's verification does not prove such a claim.")
    return _issue(user, claim_type)


def listed(user: User) -> list[Claim]:
    """Return all claims of ``user``, the revoked ones included."""
    return list(Claim.objects.filter(user=user))


def active(user: User) -> list[Claim]:
    """Return the claims of ``user`` that are neither revoked nor past their own expiry."""
    unexpired = Q(expires_at=None) | Q(expires_at__gt=clock.now())
    return list(Claim.objects.filter(unexpired, user=user, revoked=False))


@transaction.atomic
def revoke(user: User, claim_type: str) -> bool:
    """Revoke and announce one claim; return whether there was an active one."""
    return _revoke(
        Claim.objects.filter(user=user, claim_type=claim_type, revoked=False),
    )


@transaction.atomic
def revoke_all(user: User) -> None:
    """Revoke and announce every claim, as when the verification underneath is invalidated."""
    _revoke(Claim.objects.filter(user=user, revoked=False))


def _proofs(user: User, at: datetime) -> dict[str, tuple[str, Any, datetime | None]]:
    """Return what a verification at the moment ``at`` proves: type -> provider, value, expiry."""
    at = at.replace(microsecond=0)
    kyc_value = {
        "verified": True,
        "provider": KYC_VENDOR,
        "issued_at": clock.timestamp(at),
        "expires_at": clock.timestamp(at + YEARLY),
    }

    proofs = {
        "kyc_verified": (KYC_VENDOR, kyc_value, at + YEARLY),
        AGE_OVER_18: (SERVICE_NAME, True, None),
        COUNTRY_RESIDENT: (SERVICE_NAME, user.country, at + YEARLY),
        "unique_human": (KYC_VENDOR, True, None),
    }
    if not is_adult(user.date_of_birth, at.date()):
        del proofs[AGE_OVER_18]
    return proofs


def _issue(user: User, claim_type: str) -> Claim:
    """Store and announce one claim with a salted digest of its content as proof."""
    now = clock.now()
    provider, value, expires_at = _proofs(user, now)[claim_type]

    content = json.dumps(
        [secrets.token_hex(16), user.subject, claim_type, provider, value],
    )
    stored = {
        "provider": provider,
        "value": value,
        "proof_hash": hashlib.sha256(content.encode()).hexdigest(),
        "issued_at": now.replace(microsecond=0),
        "expires_at": expires_at,
        "revoked": False,
    }

    claim, _ = Claim.objects.update_or_create(
        user=user,
        claim_type=claim_type,
        defaults=stored,
    )
    announce(EventType.CLAIM_ISSUED, user, claim_type=claim_type, provider=provider)
    return claim


def _revoke(active_claims: Iterable[Claim]) -> bool:
    """Mark each claim as revoked and announce it; return whether there was one."""
    has_revoked = False
    for claim in active_claims:
        claim.revoked = True
        claim.save(update_fields=["revoked"])
        about = {"claim_type": claim.claim_type, "provider": claim.provider}
        announce(EventType.CLAIM_REVOKED, claim.user, None, **about)
        has_revoked = True
    return has_revoked


def is_adult(date_of_birth: date, today: date) -> bool:
    """Return whether the eighteenth birthday has come; 29 February counts from 1 March."""
    birthday = (today.month, today.day) >= (date_of_birth.month, date_of_birth.day)
    return today.year - date_of_birth.year - (not birthday) >= 18
