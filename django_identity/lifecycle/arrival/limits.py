"""How many Connect codes may be tried: five in ten minutes for each user and for each address.

The count is in the cache. It begins with the first try and ends ten minutes later. If the cache
does not answer, tries are let through and that is logged. Keys hold digests, no person and no
address.
"""

from __future__ import annotations

import ipaddress

from django.contrib.auth.models import AbstractBaseUser
from django.utils.crypto import salted_hmac

from django_identity.conf import Application
from django_identity.exceptions import TooManyTries
from django_identity.service import shared_state

MOST_TRIES = 5
WINDOW = 600
IPV6_PREFIX = 64


def take(
    application: Application, *, user: AbstractBaseUser | None, address: str
) -> tuple[str, ...]:
    """Count a try of ``user`` from ``address``. Returns what ``give_back`` takes.

    Raises ``TooManyTries``; nothing is counted then. People who are not signed in and whose address
    is not known share one count.
    """
    counters = _counters(application, user=user, address=address)
    for position, counter in enumerate(counters, start=1):
        if shared_state.count(counter, seconds=WINDOW) > MOST_TRIES:
            give_back(counters[:position])
            raise TooManyTries(f"{MOST_TRIES} in {WINDOW} s", retry_after=WINDOW)
    return counters


def give_back(counters: tuple[str, ...]) -> None:
    """Uncount a try whose code was never sent."""
    for counter in counters:
        shared_state.take_back(counter)


def _counters(
    application: Application, *, user: AbstractBaseUser | None, address: str
) -> tuple[str, ...]:
    subjects = [] if user is None else [f"user/{user.pk}"]
    network = _network(address)
    if network or user is None:
        subjects.append(f"address/{network}")
    return tuple(_counter(f"{application.alias}/{subject}") for subject in subjects)


def _counter(subject: str) -> str:
    hashed = salted_hmac("django_identity.limits", subject, algorithm="sha256").hexdigest()
    return f"django_identity.limits.{hashed}"


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
