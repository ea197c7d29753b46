"""Milliseconds to erase one person, at the median, on PostgreSQL."""

from django.test import override_settings
from django.utils import timezone

from benchmarks.harness import Figures, fresh_database, seconds_of
from django_identity.lifecycle.leaving import erasure
from django_identity.models import ErasureReceipt
from tests.factories import make_claim, make_event, make_grant, make_identity, make_user
from tests.fake_service import serving

PEOPLE = 101


def run() -> Figures:
    with (
        serving() as service,
        fresh_database(),
        override_settings(DJANGO_IDENTITY=service.settings()),
    ):
        receipts = iter([requested(number) for number in range(PEOPLE)])

        def erase() -> None:
            assert erasure.attempt(next(receipts).pk)

        taken = seconds_of({"one_person": erase}, rounds=PEOPLE - 1)
    return {"one_person_milliseconds": 1000 * taken["one_person"]}


def requested(number: int) -> ErasureReceipt:
    identity = make_identity(make_user(f"user-{number}"), subject=f"subject-{number}")
    make_grant(identity)
    make_claim(identity)
    make_event(identity, "claim.issued")
    now = timezone.now()
    return ErasureReceipt.objects.create(
        identity=identity, requested_at=now, next_attempt_at=now
    )
