"""Many events about many subjects, who delivers them, and the state that they must end in."""

import json
import multiprocessing
import random
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from datetime import datetime, timedelta
from typing import Any

from django.contrib.auth.models import User
from django.db.models import Model
from django.test import Client

from django_identity.handlers import KYC_TYPES
from django_identity.lifecycle import erasure
from django_identity.models import (
    ErasureReceipt,
    EventOutcome,
    LinkedIdentity,
    StoredClaim,
    WebhookEvent,
)
from tests.deliveries import event_body, post
from tests.factories import make_claim, make_grant, make_identity, make_user

SUBJECTS = 100
SEED = 20_260_706
PATIENCE = 240.0
DELIVERIES = 100
# Few, so that many events of one subject are of one moment.
MOMENTS = 12
KINDS: tuple[tuple[str, int, dict[str, Any]], ...] = (
    ("kyc.verified", 12, {"kyc_level": "level_1", "status": "verified", "provider": "One"}),
    ("kyc.verified", 12, {"kyc_level": "level_3", "provider": "Two"}),
    ("kyc.rejected", 8, {"kyc_level": "level_2"}),
    ("claim.issued", 10, {"claim_type": "age_over_18"}),
    ("claim.revoked", 8, {"claim_type": "age_over_18", "provider": "KYC"}),
    ("claim.revoked", 8, {"claim_type": "nationality"}),
    ("claim.revoked", 2, {}),
    ("consent.granted", 18, {}),
    ("consent.revoked", 6, {}),
    ("data.deletion_requested", 1, {}),
    ("wallet.opened", 4, {"colour": "blue"}),
)
# What the clock, the database or the last of several equals decides.
UNCOMPARED = {"id", "user", "identity", "created_at", "version"}
PER_EVENT = {"received_at", "outcome", "next_attempt_at"}
PER_RECEIPT = {"requested_at", "erased_at", "counts", "attempts", "next_attempt_at"}


def people(began_at: datetime) -> None:
    """Every other subject is linked: somebody who signed in, with tokens and three claims."""
    for number in range(0, SUBJECTS, 2):
        identity = make_identity(
            make_user(f"person-{number}"),
            subject=f"subject-{number}",
            signed_in_at=began_at,
            kyc_said_at=began_at,
            scopes=["profile:read", "kyc:read", "claims:read"],
            credential_issued_at=began_at,
            credential_expires_at=began_at + timedelta(days=1),
        )
        make_grant(identity, access_expires_at=began_at, refresh_expires_at=began_at)
        for claim_type in ("age_over_18", "nationality", "name"):
            make_claim(identity, claim_type, valid_until=began_at + timedelta(days=1))


def in_order(count: int, began_at: datetime) -> list[bytes]:
    """``count`` events after ``began_at``, the oldest first; a few are from before it."""
    dice = random.Random(SEED)
    weights = [weight for _, weight, _ in KINDS]
    drawn = []
    for number in range(count):
        event_type, _, about = dice.choices(KINDS, weights)[0]
        at = began_at + timedelta(minutes=dice.randrange(-1, MOMENTS))
        subject = f"subject-{dice.randrange(SUBJECTS)}"
        body = event_body(event_type, subject=subject, event_id=f"storm-{number}", at=at, **about)
        drawn.append((at, number, body))
    return [body for _, _, body in sorted(drawn)]


def shuffled(bodies: list[bytes]) -> list[bytes]:
    """All of them in disorder, three in ten of them twice."""
    dice = random.Random(SEED)
    deliveries = bodies + dice.sample(bodies, len(bodies) * 3 // 10)
    dice.shuffle(deliveries)
    return deliveries


def deliver_at_once(processes: int, count: int, began_at: datetime) -> list[int]:
    """What a process does that forks so many others, all starting together: every status."""
    deliveries = shuffled(in_order(count, began_at))
    shares = [deliveries[share::processes] for share in range(processes)]
    # Forked, and warm: each would take longer to import the site than to deliver its share.
    post(b"", signature="")
    context = multiprocessing.get_context("fork")
    start = context.Barrier(len(shares), timeout=PATIENCE)
    with ProcessPoolExecutor(len(shares), context, initializer=start.wait) as pool:
        return [status for answered in pool.map(statuses, shares) for status in answered]


def statuses(bodies: list[bytes]) -> list[int]:
    """How the webhook answers them, one after another. The service delivers again after a 503."""
    client, answers = Client(raise_request_exception=False), []
    for body in bodies:
        tries = (post(body, client=client).status_code for _ in range(DELIVERIES))
        answers.append(next((status for status in tries if status != 503), 503))
    return answers


def calm_end(bodies: list[bytes], began_at: datetime) -> list[str]:
    """The end when each event is delivered once, in this order, and nothing else happens."""
    people(began_at)
    assert set(statuses(bodies)) == {200}
    erasure.retry_pending()
    return end_state()


def end_state() -> list[str]:
    """Every row that events made or changed, without what only the clock decides."""
    return sorted(
        json.dumps(row, default=str, sort_keys=True)
        for row in (*_identities(), *_claims(), *_events(), *_receipts())
    )


def differences(found: list[str], wanted: list[str]) -> list[str]:
    """The first few rows that are not in both; a comparison of thousands takes minutes to print."""
    more, less = Counter(found) - Counter(wanted), Counter(wanted) - Counter(found)
    return [f"+ {row}" for row in more][:5] + [f"- {row}" for row in less][:5]


def clear() -> None:
    """As if nothing had happened."""
    for model in (User, WebhookEvent, ErasureReceipt):
        model.objects.all().delete()


def _identities() -> Iterator[dict[str, Any]]:
    for identity in LinkedIdentity.objects.select_related("grant"):
        held = _columns(identity) | {"is_due": identity.refetch_due_at is not None}
        grant = getattr(identity, "grant", None)
        yield held | {"refetch_due_at": None, "grant": grant and _tokens(grant)}


def _tokens(grant: Model) -> dict[str, Any]:
    """Sealing draws a nonce, so the sealed texts of two runs differ."""
    return {k: v for k, v in _columns(grant).items() if k not in {"access_token", "refresh_token"}}


def _claims() -> Iterator[dict[str, Any]]:
    for claim in StoredClaim.objects.select_related("identity"):
        yield _columns(claim) | {"subject": claim.identity.subject}


def _events() -> Iterator[dict[str, Any]]:
    """Whether one was applied or came too late depends on the order; that it was heard does not."""
    for event in WebhookEvent.objects.all():
        held = {name: value for name, value in _columns(event).items() if name not in PER_EVENT}
        held["subject_digest"] = event.subject and event.subject_digest
        if event.event_type in KYC_TYPES:
            # Whether the payload was kept depends on whether the consent stood by then.
            yield held | {"payload": None}
        else:
            yield held | {"is_ignored": event.outcome == EventOutcome.IGNORED}


def _receipts() -> Iterator[dict[str, Any]]:
    for receipt in ErasureReceipt.objects.all():
        yield {n: value for n, value in _columns(receipt).items() if n not in PER_RECEIPT}


def _columns(row: Model) -> dict[str, Any]:
    return {
        field.name: getattr(row, field.attname)
        for field in row._meta.concrete_fields
        if field.name not in UNCOMPARED
    }
