"""Milliseconds to erase one person, at the median, on PostgreSQL."""

from django.contrib.auth.models import User
from django.test import override_settings

from benchmarks.harness import Figures, fresh_database, seconds_of
from django_identity.lifecycle.leaving import erasure
from tests.factories import make_claim, make_event, make_grant, make_identity, make_user
from tests.fake_service import serving

PEOPLE = 101


def run() -> Figures:
    with (
        serving() as service,
        fresh_database(),
        override_settings(DJANGO_IDENTITY=service.settings()),
    ):
        users = iter([person(number) for number in range(PEOPLE)])

        def erase() -> None:
            assert erasure.erase_account(next(users)).erased_at

        taken = seconds_of({"one_person": erase}, rounds=PEOPLE - 1)
    return {"one_person_milliseconds": 1000 * taken["one_person"]}


def person(number: int) -> User:
    user = make_user(f"user-{number}")
    identity = make_identity(user, subject=f"subject-{number}")
    make_grant(identity)
    make_claim(identity)
    make_event(identity, "claim.issued")
    return user
