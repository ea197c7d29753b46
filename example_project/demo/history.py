"""Sixty days of a site with two hundred people, so that the admin has something to show.

The people are invented and the service does not know them: their rows are written, not earned.
"""

from __future__ import annotations

import random
import uuid
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from django_identity import conf, vault
from django_identity.models import (
    AuthorizationRequest,
    Consent,
    ErasureReceipt,
    EventOutcome,
    LinkedIdentity,
    LinkedVia,
    Purpose,
    RevokedBy,
    StoredClaim,
    TokenGrant,
    WebhookEvent,
    digest,
)
from django_identity.secrets import Secret

PEOPLE, DAYS, ERASED = 200, 60, 6
FIRST = (
    "Abeni",
    "Bisi",
    "Chike",
    "Dare",
    "Efua",
    "Femi",
    "Ginika",
    "Habiba",
    "Ife",
    "Jumoke",
    "Kofi",
    "Lanre",
    "Musa",
    "Nneka",
)
LAST = (
    "Adeyemi",
    "Balogun",
    "Chukwu",
    "Danso",
    "Eze",
    "Fashola",
    "Garba",
    "Hassan",
    "Ibe",
    "Johnson",
    "Kamara",
    "Lawal",
)
KYC_VENDOR, SERVICE = "Sandbox KYC", "Sandbox Identity"
DAY, CREDENTIAL_LIFE = timedelta(days=1), timedelta(hours=24)
FAILURES = ("service_unavailable", "service_timeout", "rate_limited")
# (provider, value) of each claim type that a verified adult has.
CLAIMS: dict[str, tuple[str, Any]] = {
    "kyc_verified": (KYC_VENDOR, {"verified": True, "provider": KYC_VENDOR}),
    "age_over_18": (SERVICE, True),
    "country_resident": (SERVICE, "NG"),
    "unique_human": (KYC_VENDOR, True),
}


@transaction.atomic
def make_history() -> None:
    """Write the history. It is the same each time, but for the dates."""
    History(timezone.now(), random.Random(2026)).write()  # noqa: S311  repeatable, no secret


class History:
    """What happened until ``now``, by the numbers of ``some``."""

    def __init__(self, now: datetime, some: random.Random) -> None:
        self._now, self._some = now, some
        self._application = conf.application()
        self._place = {"environment": self._application.environment}

    def write(self) -> None:
        """Write rows of every kind, in one statement for each kind and in order of time."""
        linked_at = sorted(self._ago(DAYS) for _ in range(PEOPLE))
        users = User.objects.bulk_create(
            self._user(number, joined_at) for number, joined_at in enumerate(linked_at)
        )
        identities = LinkedIdentity.objects.bulk_create(
            self._identity(number, user, linked_at[number])
            for number, user in enumerate(users)
        )
        for identity, at in zip(identities, linked_at, strict=True):
            identity.created_at = at
        LinkedIdentity.objects.bulk_update(identities, ["created_at"])
        granted = [each for each in identities if each.consent == Consent.GRANTED]
        by_sign_in = [each for each in granted if each.linked_via == LinkedVia.OAUTH]
        StoredClaim.objects.bulk_create(
            claim for identity in by_sign_in for claim in self._claims(identity)
        )
        grants = TokenGrant.objects.bulk_create(map(self._grant, by_sign_in))
        for grant in grants:
            grant.created_at = grant.identity.created_at
        TokenGrant.objects.bulk_update(grants, ["created_at"])
        AuthorizationRequest.objects.bulk_create(
            request for identity in identities for request in self._sign_ins(identity)
        )
        events = [event for each in identities for event in self._events(each)]
        events.sort(key=lambda event: event.received_at)
        WebhookEvent.objects.bulk_create(events)
        waiting = self._user(PEOPLE, self._ago(DAYS))
        waiting.save()
        ErasureReceipt.objects.bulk_create(self._receipts(waiting))

    def _user(self, number: int, joined_at: datetime) -> User:
        first, last = FIRST[number % len(FIRST)], LAST[number * 7 % len(LAST)]
        name = f"{first}.{last}.{number}".lower()
        user = User(
            username=name,
            email=f"{name}@example.org",
            first_name=first,
            last_name=last,
            date_joined=joined_at,
        )
        user.set_unusable_password()
        return user

    def _identity(self, number: int, user: User, linked_at: datetime) -> LinkedIdentity:
        """Each tenth person took the consent back, each twelfth came with a code, and so on."""
        subject = str(uuid.UUID(int=self._some.getrandbits(128), version=4))
        by_code = number % 12 == 5
        is_revoked = number % 10 == 9 and not by_code
        is_verified, fails = number % 9 != 4, number % 29 == 7
        revoked_at = linked_at + (self._now - linked_at) * self._some.random()
        fetched_at = self._now - timedelta(
            hours=self._some.uniform(22, 30) if fails else 0,
        )
        fetched_at -= timedelta(hours=self._some.uniform(0, 8))
        identity = LinkedIdentity(
            **self._place,
            user=user,
            subject=subject,
            subject_digest=digest(*self._place.values(), subject),
            consent=Consent.REVOKED if is_revoked else Consent.GRANTED,
            revoked_at=revoked_at if is_revoked else None,
            revoked_by=RevokedBy.PERSON if is_revoked else "",
            linked_via=LinkedVia.CONNECT if by_code else LinkedVia.OAUTH,
            made_account="" if by_code else str(user.pk),
            signed_in_at=linked_at,
        )
        if is_revoked:
            return identity
        identity.kyc_level = "level_2" if is_verified else "level_1"
        unproven = "rejected" if number % 18 == 4 else "unverified"
        identity.kyc_status = "verified" if is_verified else unproven
        identity.kyc_provider = KYC_VENDOR if is_verified else ""
        identity.kyc_verified_at = linked_at if is_verified else None
        identity.kyc_said_at = fetched_at
        if by_code:
            identity.connect_issued_at = linked_at
            identity.connect_person = f"{user.first_name} {user.last_name[0]}."
        identity.scopes = list(self._application.scopes)
        if by_code:
            identity.scopes = list(self._application.connect_scopes)
            return identity
        identity.credential_issued_at = fetched_at
        identity.credential_expires_at = fetched_at + CREDENTIAL_LIFE
        # What fails waits for its next try, and nothing is due soon: the worker has no part in it.
        identity.refetch_due_at = max(
            fetched_at + CREDENTIAL_LIFE * 0.75,
            self._now + DAY / 3,
        )
        if fails:
            identity.refetch_failures = self._some.randint(3, 9)
            identity.last_error = self._some.choice(FAILURES)
        return identity

    def _claims(self, identity: LinkedIdentity) -> Iterator[StoredClaim]:
        """None for somebody who is not verified; some are not 18, and some claims are revoked."""
        if identity.kyc_status != "verified":
            return
        fetched_at = identity.credential_issued_at
        for claim_type, (provider, value) in CLAIMS.items():
            if claim_type == "age_over_18" and self._happens(0.06):
                continue
            yield StoredClaim(
                identity=identity,
                claim_type=claim_type,
                provider=provider,
                value=value,
                proof_hash=digest(identity.subject, claim_type),
                issued_at=identity.created_at,
                valid_until=identity.credential_expires_at,
                revoked_at=fetched_at if self._happens(0.03) else None,
            )

    def _grant(self, identity: LinkedIdentity) -> TokenGrant:
        fetched_at = identity.credential_issued_at or self._now
        return TokenGrant(
            identity=identity,
            access_token=self._sealed(identity, "access_token"),
            refresh_token=self._sealed(identity, "refresh_token"),
            scopes=identity.scopes,
            access_expires_at=fetched_at + timedelta(hours=1),
            refresh_expires_at=fetched_at + 30 * DAY,
            needs_reauthorization=self._happens(0.02),
        )

    def _sealed(self, identity: LinkedIdentity, column: str) -> str:
        keys, context = (
            self._application.encryption_keys,
            identity.sealing_context(column),
        )
        return vault.seal(Secret(f"{column} of nobody"), keys=keys, context=context)

    def _sign_ins(self, identity: LinkedIdentity) -> Iterator[AuthorizationRequest]:
        """The first at the link, then some more; now and then the person said no first."""
        if identity.linked_via != LinkedVia.OAUTH:
            return
        if self._happens(0.1):
            yield self._request(
                identity,
                identity.created_at - timedelta(minutes=3),
                "access_denied",
            )
        yield self._request(identity, identity.created_at, "completed")
        until = identity.revoked_at or self._now
        for _ in range(self._some.randint(0, 4)):
            at = (
                identity.created_at
                + (until - identity.created_at) * self._some.random()
            )
            yield self._request(identity, at, "completed")

    def _request(
        self,
        identity: LinkedIdentity,
        at: datetime,
        outcome: str,
    ) -> AuthorizationRequest:
        is_completed = outcome == "completed"
        return AuthorizationRequest(
            **self._place,
            state_digest=digest(identity.subject, at.isoformat(), outcome),
            purpose=Purpose.SIGN_IN,
            user_id=None if is_completed else identity.user_id,
            completed_by_id=identity.user_id if is_completed else None,
            redirect_uri="/identity/callback/",
            consumed_at=at,
            expires_at=self._now
            + 30 * DAY,  # so that the purge leaves the demo its history
            outcome=outcome,
        )

    def _events(self, identity: LinkedIdentity) -> Iterator[WebhookEvent]:
        at = identity.created_at
        yield self._event(identity, "consent.granted", at, scopes=identity.scopes)
        if identity.kyc_status == "verified":
            about = {
                "kyc_level": "level_2",
                "status": "verified",
                "provider": KYC_VENDOR,
            }
            yield self._event(identity, "kyc.verified", at, **about)
            for claim_type, (provider, _value) in CLAIMS.items():
                about = {"claim_type": claim_type, "provider": provider}
                yield self._event(identity, "claim.issued", at, **about)
        if identity.revoked_at:
            yield self._event(identity, "consent.revoked", identity.revoked_at)

    def _event(
        self,
        identity: LinkedIdentity,
        event_type: str,
        at: datetime,
        **about: Any,
    ) -> WebhookEvent:
        """Applied, as nearly all."""
        event_id = f"evt_{digest(identity.subject, event_type, str(about))[:32]}"
        outcome, error, attempts = EventOutcome.APPLIED, "", 1
        if self._happens(0.01):
            outcome = EventOutcome.SUPERSEDED
        elif self._happens(0.03) and at > self._now - 20 * DAY:
            outcome, error, attempts = EventOutcome.FAILED, "ConnectionError", 8
        payload = {
            "event_type": event_type,
            "event_id": event_id,
            "timestamp": at.isoformat(),
            "data": {"user_id": identity.subject, **about},
        }
        return WebhookEvent(
            event_id=event_id,
            event_digest=digest(self._application.environment, event_id),
            event_type=event_type,
            occurred_at=at,
            received_at=at + timedelta(seconds=self._some.uniform(0.1, 3)),
            handled_at=None if error else at + timedelta(seconds=5),
            subject=identity.subject,
            subject_digest=identity.subject_digest,
            payload=payload,
            outcome=outcome,
            error=error,
            attempts=attempts,
        )

    def _receipts(self, waiting: User) -> Iterator[ErasureReceipt]:
        """Those that were done, and one whose account waits for the site's own part."""
        for at in sorted(self._ago(DAYS) for _ in range(ERASED)):
            yield ErasureReceipt(
                requested_at=at,
                erased_at=at + timedelta(seconds=2),
                counts={"linkedidentity": 1, "storedclaim": 4, "webhookevent": 6},
                attempts=1,
            )
        yield ErasureReceipt(
            account=str(waiting.pk),
            account_made=True,
            requested_at=self._now - timedelta(hours=5),
            attempts=4,
            next_attempt_at=self._now + DAY,
            error="BillingSystemDown",
        )

    def _ago(self, days: int) -> datetime:
        return self._now - timedelta(days=self._some.uniform(0.5, days))

    def _happens(self, chance: float) -> bool:
        return self._some.random() < chance
