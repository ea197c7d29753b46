"""Events at the same moment about one person: each is applied by its first delivery."""

from collections.abc import Callable
from functools import partial

import pytest
from django.db import connection
from django.utils import timezone

from django_identity.lifecycle.leaving import disconnecting, erasure
from django_identity.models import Consent, ErasureReceipt, LinkedIdentity, WebhookEvent
from tests.concurrency import at_once
from tests.deliveries import event_body, post
from tests.factories import make_claim, make_grant, make_identity, make_user

pytestmark = pytest.mark.django_db(transaction=True)

#: SQLite has one writer, so little can race there.
PEOPLE = 5 if connection.vendor == "sqlite" else 15
Call = Callable[[], int]
#: Until a delivery has begun to wait for a lock.
SOON = 0.3


def person(number: int) -> LinkedIdentity:
    """The identity of an older account."""
    identity = make_identity(
        make_user(f"person-{number}"),
        subject=f"subject-{number}",
        account_made=False,
        scopes=["kyc:read", "claims:read"],
    )
    make_claim(identity)
    make_grant(identity)
    return identity


def delivered(event_type: str, identity: LinkedIdentity) -> Call:
    body = event_body(event_type, subject=identity.subject)
    return lambda: post(body).status_code


@pytest.mark.parametrize(
    "event_types",
    [
        ("consent.revoked", "consent.revoked", "consent.revoked"),
        ("consent.revoked", "data.deletion_requested", "kyc.rejected"),
    ],
    ids=str,
)
def test_events_of_one_person_at_once(event_types: tuple[str, ...]) -> None:
    statuses: list[int] = []
    for number in range(PEOPLE):
        identity = person(number)
        statuses += at_once(
            delivered(event_type, identity) for event_type in event_types
        )
    assert statuses == [200] * (PEOPLE * len(event_types))
    assert not WebhookEvent.objects.filter(outcome__in=("", "failed"))
    assert not LinkedIdentity.objects.filter(consent=Consent.GRANTED)


def disconnected(identity: LinkedIdentity) -> int:
    return 200 if disconnecting.disconnect(identity) else 404


def erased(identity: LinkedIdentity) -> int:
    receipt = erasure.erase_account(identity.user)
    return 200 if receipt.pk else 500


def erased_as_a_subject(identity: LinkedIdentity) -> int:
    return 200 if erasure.erase_subject(identity.subject).pk else 500


@pytest.mark.parametrize("other", [disconnected, erased, erased_as_a_subject])
def test_a_revocation_beside_the_persons_own_wish(
    other: Callable[[LinkedIdentity], int],
) -> None:
    statuses: list[int] = []
    for number in range(PEOPLE):
        identity = person(number)
        calls = [
            delivered("consent.revoked", identity),
            partial(other, identity),
            delivered("claim.revoked", identity),
        ]
        statuses += at_once(calls)
    assert statuses == [200] * len(statuses)


def test_an_event_and_its_repeats_at_once() -> None:
    """One of them applies it."""
    for number in range(PEOPLE):
        identity = person(number)
        body = event_body("data.deletion_requested", subject=identity.subject)
        call = partial(post, body)
        assert {each.status_code for each in at_once([call] * 4)} == {200}
    assert ErasureReceipt.objects.count() == PEOPLE
    assert (
        WebhookEvent.objects.filter(received_at__lte=timezone.now()).count() == PEOPLE
    )
