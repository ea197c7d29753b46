"""What claims are proven after several answers and revocations, by each way in.

An answer may come from a cache, and the service's clock may differ.
"""

import time
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import pytest
from django.test import Client
from django.utils import timezone

from django_identity.models import LinkedIdentity, StoredClaim
from tests.credentials import issuer
from tests.deliveries import deliver
from tests.factories import make_grant, make_identity, make_user
from tests.lifecycle.refetches import refetched
from tests.sign_in import sign_in

pytestmark = pytest.mark.django_db(transaction=True)

A_DAY = 86_400
A_MONTH = 30 * A_DAY
NAMES = {"A": "age_over_18", "U": "unique_human"}


class Answer(NamedTuple):
    """``proves``, ``revokes``: letters of claims. ``at``: when the credential was issued, in
    seconds from now, or None without one. ``timed``: whether it says so, beside its end.
    """

    proves: str = ""
    at: int | None = 0
    revokes: str = ""
    timed: bool = True


class Revoked(NamedTuple):
    """An event about this claim, or about all of them."""

    claim: str
    at: float
    provider: str = ""


#: Each step, and the letters of the claims that are proven after it.
HISTORIES: dict[str, list[tuple[Answer | Revoked, str]]] = {
    "a revoked claim counts again by a later credential": [
        (Revoked("A", -60.5), ""), (Answer("A", -62), ""), (Answer("A", -61), "A"),
    ],
    "and by one whose end tells its time": [
        (Revoked("A", -60.5), ""), (Answer("A", -62, timed=False), ""),
        (Answer("A", -61, timed=False), "A"),
    ],
    "an end that is too late tells no time": [
        (Revoked("A", -7200), ""), (Answer("A", 310, timed=False), ""),
        (Answer("A", A_MONTH, timed=False), ""),
    ],
    "a former one without a time, after a list that revokes": [
        (Answer("A", -60, timed=False), "A"), (Answer(at=None, revokes="A"), ""),
        (Answer("A", -60, timed=False), ""), (Answer("A", 100, timed=False), "A"),
    ],
    "a former one without a time, after an empty list": [
        (Answer("A", -60, timed=False), "A"), (Answer(at=None), ""),
        (Answer("A", -60, timed=False), ""), (Answer("A", 100, timed=False), "A"),
    ],
    "a list that revokes is later than the stored credential": [
        (Answer("A", 240), "A"), (Answer("A", 240, revokes="A"), ""), (Answer("A", 240), ""),
        (Answer("A", 241), "A"),
    ],
    "though it brings no credential": [
        (Answer("A", 240), "A"), (Answer(at=None, revokes="A"), ""), (Answer("A", 240), ""),
        (Answer("A", 241), "A"),
    ],
    "the same answer after an empty one": [
        (Answer("A"), "A"), (Answer(at=None), ""), (Answer(at=None), ""), (Answer("A"), ""),
        (Answer("A", 1), "A"),
    ],
    "a revoked claim that is listed no more": [
        (Answer("A", -90), "A"), (Revoked("A", -60), ""), (Answer("", -80), ""),
        (Answer("", -50), ""), (Answer("A", -70), ""), (Answer("A", -40), "A"),
    ],
    "an older credential leaves the stored proof": [
        (Answer("A"), "A"), (Answer("U", -7200), "A"), (Answer("U", -7200, timed=False), "A"),
        (Answer("A", None), "A"),
    ],
    "one without a time leaves that of the newest": [
        (Answer("A"), "A"), (Answer("U", A_MONTH, timed=False), "U"), (Answer("A", -10), "U"),
    ],
    "an answer that cannot be used may revoke": [
        (Answer("AU"), "AU"), (Answer("A", -7200, revokes="U"), "A"),
        (Answer("", None, revokes="A"), ""),
    ],
    "revoked before it was stored": [
        (Answer("", -7200), ""), (Revoked("A", -600), ""), (Answer("AU", -1800), "U"),
        (Answer("AU", 0), "AU"),
    ],
    "revoked before it was stored, with the provider by another name": [
        (Answer("", -7200), ""), (Revoked("A", -600, "other"), ""), (Answer("AU", -1800), "U"),
        (Answer("AU", 0), "AU"),
    ],
    "the former credential after an event": [
        (Answer("A", 0), "A"), (Revoked("A", 0), ""), (Answer("A", 0), ""), (Answer("A", 2), "A"),
    ],
    "by a clock that is ahead": [
        (Answer("A", 240), "A"), (Revoked("A", 240), ""), (Answer("A", 240), ""),
        (Answer("A", 242), "A"),
    ],
    "all revoked before one was stored": [
        (Answer("", -7200), ""), (Revoked("", -600), ""), (Answer("AU", -1800), ""),
        (Answer("AU", 0), "AU"),
    ],
}  # fmt: skip


def listed(letters: str, *, revoked: bool) -> list[dict[str, Any]]:
    return [
        {"claim_type": NAMES[each], "provider": "KYC", "revoked": revoked}
        for each in letters
    ]


def play(service, step: Answer, now: int) -> None:
    """From now on the service gives this answer."""
    valid = "".join(each for each in step.proves if each not in step.revokes)
    service.disclosed = {NAMES[each]: True for each in step.proves}
    at = now + (step.at or 0)
    service.payload = {"iat": at if step.timed else issuer.ABSENT, "exp": at + A_DAY}
    data = {
        "user_id": service.subject,
        "claims": listed(valid, revoked=False) + listed(step.revokes, revoked=True),
        "credential": None if step.at is None else service.credential(),
    }
    service.answers["claims"] = {"success": True, "data": data}


@pytest.mark.parametrize("history", HISTORIES.values(), ids=HISTORIES)
@pytest.mark.parametrize("way", ["re-fetch", "sign-in"])
def test_what_is_proven_after_each_step(service, way, history):
    past = timezone.now() - timedelta(seconds=1)
    make_grant(make_identity(make_user(), refetch_due_at=past, scopes=["claims:read"]))
    now = int(time.time())
    for number, (step, letters) in enumerate(history):
        if isinstance(step, Revoked):
            about = {"claim_type": NAMES[step.claim]} if step.claim else {}
            about |= {"provider": step.provider} if step.provider else {}
            at = datetime.fromtimestamp(now + step.at, UTC)
            deliver("claim.revoked", at=at, **about)
        else:
            play(service, step, now)
            if way == "re-fetch":
                refetched(LinkedIdentity.objects.get())
            else:
                assert sign_in(Client()).status_code == 302
        rows = StoredClaim.objects.exclude(valid_until=None).filter(revoked_at=None)
        proven = {NAMES[each] for each in letters}
        assert set(rows.values_list("claim_type", flat=True)) == proven, number
