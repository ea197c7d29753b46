"""A storm of events from many processes at once ends where calm would have ended."""

import json
import multiprocessing
import random
import warnings
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.db.models import Model
from django.test import Client
from django.utils import timezone

from django_identity.event_types import kind_of
from django_identity.lifecycle.leaving import pending_erasures
from django_identity.models import (
    ErasureReceipt,
    EventOutcome,
    LinkedIdentity,
    StoredClaim,
    TokenGrant,
    WebhookEvent,
)
from tests import concurrency
from tests.deliveries import event_body, post
from tests.factories import make_claim, make_grant, make_identity, make_user

pytestmark = [pytest.mark.race, pytest.mark.django_db(transaction=True)]

BEGAN_AT = timezone.now().replace(microsecond=0) - timedelta(hours=2)
PROCESSES = 8
EVENTS = {"postgresql": 1_000}
FEWER_EVENTS = 200
SUBJECTS = 100
SEED = 20_260_706
PATIENCE = 240.0
DELIVERIES = 100
# Few, so that many events of one subject are of one moment.
MOMENTS = 12
KINDS: tuple[tuple[str, int, dict[str, Any]], ...] = (
    (
        "kyc.verified",
        12,
        {"kyc_level": "level_1", "status": "verified", "provider": "One"},
    ),
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
# What the clock, the database, a nonce or the last of several equals decides.
UNCOMPARED = {
    "id",
    "user",
    "made_account",
    "identity",
    "created_at",
    "version",
    "refetch_due_at",
    "access_token",
    "refresh_token",
    "received_at",
    "outcome",
    "requested_at",
    "erased_at",
    "counts",
    "attempts",
    "next_attempt_at",
}


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
        body = event_body(
            event_type,
            subject=subject,
            event_id=f"storm-{number}",
            at=at,
            **about,
        )
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
    # Beside this thread only the one that waits for it runs.
    warnings.filterwarnings(
        "ignore",
        "This process .* is multi-threaded",
        DeprecationWarning,
    )
    context = multiprocessing.get_context("fork")
    start = context.Barrier(len(shares), timeout=PATIENCE)
    with ProcessPoolExecutor(len(shares), context, initializer=start.wait) as pool:
        return [
            status for answered in pool.map(statuses, shares) for status in answered
        ]


def statuses(bodies: list[bytes]) -> list[int]:
    """How the webhook answers them, one after another. The service delivers again after a 503."""
    client, answers = Client(raise_request_exception=False), []
    for body in bodies:
        tries = (post(body, client=client).status_code for _ in range(DELIVERIES))
        answers.append(next((status for status in tries if status != 503), 503))
    return answers


def end_state() -> list[str]:
    """Every row that events made or changed, without what only the clock decides."""
    erased = _erased()
    rows = [
        *map(_identity, LinkedIdentity.objects.all()),
        *(
            _columns(row) | {"subject": row.identity.subject}
            for model in (TokenGrant, StoredClaim)
            for row in model.objects.select_related("identity")
        ),
        *(_event(event, erased) for event in WebhookEvent.objects.all()),
        *map(_columns, ErasureReceipt.objects.all()),
    ]
    return sorted(json.dumps(row, default=str, sort_keys=True) for row in rows)


def differences(found: list[str], wanted: list[str]) -> list[str]:
    """The first few rows that are not in both; a comparison of thousands takes minutes to print."""
    more, less = Counter(found) - Counter(wanted), Counter(wanted) - Counter(found)
    return [f"+ {row}" for row in more][:5] + [f"- {row}" for row in less][:5]


def _identity(identity: LinkedIdentity) -> dict[str, Any]:
    return _columns(identity) | {"is_due": identity.refetch_due_at is not None}


def _erased() -> set[str]:
    """The digests of the people who are gone."""
    were_linked = {
        LinkedIdentity(environment="test", subject=f"subject-{number}").own_digest
        for number in range(0, SUBJECTS, 2)
    }
    linked = LinkedIdentity.objects.values_list("subject_digest", flat=True)
    return were_linked.difference(linked)


def _event(event: WebhookEvent, erased: set[str]) -> dict[str, Any]:
    """Whether one was applied or came too late depends on the order; that it was heard does not.

    What comes after the erasure is about nobody.
    """
    held = _columns(event) | {"subject_digest": event.subject and event.subject_digest}
    if kind_of(event.event_type).about_kyc:
        # Whether the payload was kept depends on whether the consent stood by then.
        return held | {"payload": None}
    if event.subject_digest in erased:
        return held
    return held | {"is_ignored": event.outcome == EventOutcome.IGNORED}


def _columns(row: Model) -> dict[str, Any]:
    return {
        field.name: getattr(row, field.attname)
        for field in row._meta.concrete_fields
        if field.name not in UNCOMPARED
    }


def test_a_storm_ends_as_calm_does():
    """Eight processes at once, shuffled and repeated: the end of in-order single delivery."""
    count = EVENTS.get(connection.vendor, FEWER_EVENTS)
    people(BEGAN_AT)
    assert set(statuses(in_order(count, BEGAN_AT))) == {200}
    pending_erasures.retry()
    calm = end_state()
    for model in (User, WebhookEvent, ErasureReceipt):
        model.objects.all().delete()

    people(BEGAN_AT)
    [answers] = concurrency.in_processes(
        1,
        deliver_at_once,
        PROCESSES,
        count,
        BEGAN_AT,
        patience=600,
    )
    assert Counter(answers) == {200: count + count * 3 // 10}
    assert WebhookEvent.objects.count() == count
    pending_erasures.retry()
    assert differences(end_state(), calm) == []
