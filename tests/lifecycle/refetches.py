"""Re-fetches in a test: who is due, of one identity, and of all that is due."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from django.utils import timezone

from django_identity.lifecycle.minute.upkeep import (
    Refetched,
    refetch_due,
    refetch_these,
)
from django_identity.models import LinkedIdentity
from tests.factories import make_grant, make_identity, make_user
from tests.fake_service import FakeService, html

AN_HOUR = timedelta(hours=1)
DOWN = html("500 Oops")


def make_due(
    number: int = 0,
    *,
    ago: timedelta = AN_HOUR,
    **fields: Any,
) -> LinkedIdentity:
    """A linked identity whose re-fetch is due since then, with a live token."""
    held = {"refetch_due_at": timezone.now() - ago, **fields}
    identity = make_identity(
        make_user(f"user-{number}"),
        subject=f"subject-{number}",
        **held,
    )
    make_grant(identity, refresh_token=f"rt-{number}-0")
    return LinkedIdentity.objects.get(pk=identity.pk)


def make_many_due(number: int) -> None:
    for each in range(number):
        make_due(each)


def answer_everybody(
    service: FakeService,
    *,
    fails: Callable[[str], object] = lambda _subject: False,
) -> None:
    """From now on the service answers about whoever is asked for, or ``fails``."""

    def turn() -> None:
        service.subject = service.newest("claims").split("/")[-2]
        good = service.good("claims")
        service.answers["claims"] = DOWN if fails(service.subject) else good

    service.meanwhile["claims"] = turn


def refetched(identity: LinkedIdentity) -> Refetched | None:
    """The result of a re-fetch of its row as it is now, or None if there is nothing to fetch."""
    return next(refetch_these([identity.pk]), None)


def all_refetched() -> list[Refetched]:
    """The results of all re-fetches that are due."""
    return list(refetch_due(most=1000))
