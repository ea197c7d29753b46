"""Tries of Connect codes: five in ten minutes for each user and for each address, in the cache.

Each try takes one of five slots that are free again ten minutes later, so the limit slides with the
time, and ``cache.add`` keeps it whoever asks at once. Keys hold digests, no person and no address.
"""

from __future__ import annotations

import ipaddress
import math
import time
from dataclasses import dataclass

from django.contrib.auth.models import AbstractBaseUser
from django.core.cache import cache
from django.utils.crypto import salted_hmac

from django_identity.conf import Application
from django_identity.exceptions import TooManyTries

MOST_TRIES = 5
WINDOW = 600
IPV6_PREFIX = 64


@dataclass(frozen=True, slots=True)
class Try:
    """The slots that one try holds, to be given back if nothing was sent."""

    slots: tuple[str, ...]


def take(application: Application, *, user: AbstractBaseUser | None, address: str) -> Try:
    """Count a try of ``user`` from ``address``. Raises ``TooManyTries``; nothing is counted then.

    An address that is not known is counted as one for people who are not signed in.
    """
    taken: list[str] = []
    for counter in _counters(application, user=user, address=address):
        slot = _free_slot(counter)
        if slot is None:
            give_back(Try(tuple(taken)))
            raise TooManyTries(f"{MOST_TRIES} in {WINDOW} s", retry_after=_wait(counter))
        taken.append(slot)
    return Try(tuple(taken))


def give_back(taken: Try) -> None:
    """Uncount a try whose code was never sent."""
    cache.delete_many(taken.slots)


def _counters(
    application: Application, *, user: AbstractBaseUser | None, address: str
) -> list[list[str]]:
    subjects = [] if user is None else [f"user/{user.pk}"]
    network = _network(address)
    if network or user is None:
        subjects.append(f"address/{network}")
    return [_slots(f"{application.alias}/{subject}") for subject in subjects]


def _slots(subject: str) -> list[str]:
    hashed = salted_hmac("django_identity.tries", subject, algorithm="sha256").hexdigest()
    return [f"django_identity.tries.{hashed}.{number}" for number in range(MOST_TRIES)]


def _free_slot(slots: list[str]) -> str | None:
    now = time.time()
    return next((slot for slot in slots if cache.add(slot, now, timeout=WINDOW)), None)


def _wait(slots: list[str]) -> int:
    """Whole seconds until the first of ``slots`` is free again."""
    oldest = min(cache.get_many(slots).values(), default=time.time() - WINDOW)
    return max(1, math.ceil(oldest + WINDOW - time.time()))


def _network(address: str) -> str:
    """The address, or the /64 of an IPv6 one: a whole /64 is one customer's."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return ""
    if isinstance(parsed, ipaddress.IPv6Address):
        if parsed.ipv4_mapped is not None:
            return str(parsed.ipv4_mapped)
        return str(ipaddress.ip_network((int(parsed), IPV6_PREFIX), strict=False))
    return str(parsed)
