"""Grants that are due for a refresh, what is stored of them, and who heard of a signal."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from django.dispatch import Signal
from django.utils import timezone

from django_identity import signals
from django_identity.lifecycle.ground import sealing
from django_identity.models import LinkedIdentity, TokenGrant
from tests.factories import make_grant


def expired(identity: LinkedIdentity, **fields: Any) -> TokenGrant:
    past = timezone.now() - timedelta(seconds=1)
    return make_grant(identity, **{"access_expires_at": past, **fields})


def stored(identity: LinkedIdentity, column: str = "refresh_token") -> str:
    return sealing.unseal(identity, TokenGrant.objects.get(), column).reveal()


def of_users(heard: list[Any]) -> list[tuple[str, Any]]:
    """Of what was ``heard``: the signals about a user, with the key."""
    return [(name, told["key"]) for name, told in heard if told["user"] is not None]


@contextmanager
def announced(
    signal: Signal = signals.reauthorization_needed,
) -> Iterator[list[LinkedIdentity]]:
    """The identities about which the signal was sent."""
    heard: list[LinkedIdentity] = []

    def hear(*, identity: LinkedIdentity, **_kwargs: object) -> None:
        heard.append(identity)

    signal.connect(hear)
    try:
        yield heard
    finally:
        signal.disconnect(hear)
