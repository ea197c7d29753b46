"""Claims: issued after verification, revoked by the person or with the verification."""

import hashlib
import json
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any

from django.db import transaction

from django_identity.sandbox.events.announcing import announce
from django_identity.sandbox.events.event import EventType
from django_identity.sandbox.instruments import clock
from django_identity.sandbox.models import Claim, KycStatus, User

SERVICE_NAME = "Sandbox Identity"
KYC_VENDOR = "Sandbox KYC"
YEARLY = timedelta(days=365)

KYC_VERIFIED = "kyc_verified"
AGE_OVER_18 = "age_over_18"
COUNTRY_RESIDENT = "country_resident"
UNIQUE_HUMAN = "unique_human"


class NotProven(LookupError):
    """No verification proves such a claim of this person."""


@dataclass(frozen=True, slots=True)
class _Proof:
    """What a verification proves about a person."""

    claim_type: str
    provider: str
    value: Any
    expires_at: datetime | None


@transaction.atomic
def issue_all(user: User) -> list[Claim]:
    """Issue and announce every claim that the verification of ``user`` proves, anew if revoked."""
    now = clock.now().replace(microsecond=0)
    return [_issue(user, proof, now) for proof in _proofs(user, now)]


@transaction.atomic
def issue(user: User, claim_type: str) -> Claim:
    """Issue and announce one claim, anew if it is revoked.

    Raises:
        NotProven: ``user`` is not verified, or the verification does not prove the claim.
    """
    now = clock.now().replace(microsecond=0)
    if user.kyc_status == KycStatus.VERIFIED:
        for proof in _proofs(user, now):
            if proof.claim_type == claim_type:
                return _issue(user, proof, now)
    raise NotProven("The person's verification does not prove such a claim.")


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


@transaction.atomic
def revoke(user: User, claim_type: str) -> bool:
    """Revoke and announce one claim; return whether there was an active one."""
    found = list(Claim.objects.filter(user=user, claim_type=claim_type, revoked=False))
    _revoke(found, user)
    return bool(found)


@transaction.atomic
def revoke_all(user: User) -> None:
    """Revoke and announce every claim, as when the verification underneath is invalidated."""
    _revoke(list(Claim.objects.filter(user=user, revoked=False)), user)


def _proofs(user: User, now: datetime) -> list[_Proof]:
    """Return what a verification of ``user`` at the moment ``now`` proves."""
    kyc_value = {
        "verified": True,
        "provider": KYC_VENDOR,
        "issued_at": clock.timestamp(now),
        "expires_at": clock.timestamp(now + YEARLY),
    }
    proofs = [_Proof(KYC_VERIFIED, KYC_VENDOR, kyc_value, now + YEARLY)]
    if is_adult(user.date_of_birth, now.date()):
        proofs.append(_Proof(AGE_OVER_18, SERVICE_NAME, True, None))
    proofs.append(_Proof(COUNTRY_RESIDENT, SERVICE_NAME, user.country, now + YEARLY))
    proofs.append(_Proof(UNIQUE_HUMAN, KYC_VENDOR, True, None))
    return proofs


def _issue(user: User, proof: _Proof, issued_at: datetime) -> Claim:
    """Store and announce one claim with a salted digest of its content as proof."""
    subject_and_claim = [user.subject, proof.claim_type, proof.provider, proof.value]
    content = json.dumps([secrets.token_hex(16), *subject_and_claim])
    claim, _created = Claim.objects.update_or_create(
        user=user,
        claim_type=proof.claim_type,
        defaults={
            "provider": proof.provider,
            "value": proof.value,
            "proof_hash": hashlib.sha256(content.encode()).hexdigest(),
            "issued_at": issued_at,
            "expires_at": proof.expires_at,
            "revoked": False,
        },
    )
    _announce(EventType.CLAIM_ISSUED, user, claim)
    return claim


def _revoke(active_claims: Iterable[Claim], user: User) -> None:
    """Mark each claim as revoked and announce it."""
    for claim in active_claims:
        claim.revoked = True
        claim.save(update_fields=["revoked"])
        _announce(EventType.CLAIM_REVOKED, user, claim)


def _announce(kind: EventType, user: User, claim: Claim) -> None:
    announce(kind, user, claim_type=claim.claim_type, provider=claim.provider)


def is_adult(date_of_birth: date, today: date) -> bool:
    """Return whether the eighteenth birthday has come; 29 February counts from 1 March."""
    birthday = (today.month, today.day) >= (date_of_birth.month, date_of_birth.day)
    return today.year - date_of_birth.year - (not birthday) >= 18
