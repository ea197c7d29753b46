"""The limit of Connect codes: five in ten minutes for each user and for each address.

The counter is in the cache. It starts with the first attempt and expires ten minutes later. If the
cache does not answer, attempts are allowed and the failure is logged. Cache keys contain digests,
no user and no address.
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
    """Count an attempt of ``user`` from ``address``. Returns the argument for ``give_back``.

    Raises ``TooManyTries`` without counting. People who are not signed in and have no known address
    share one counter.
    """
    counters = _counters(application, user=user, address=address)
    for position, counter in enumerate(counters, start=1):
        if shared_state.count(counter, seconds=WINDOW) > MOST_TRIES:
            give_back(counters[:position])
            raise TooManyTries(f"{MOST_TRIES} in {WINDOW} s", retry_after=WINDOW)
    return counters


def give_back(counters: tuple[str, ...]) -> None:
    """Do not count an attempt whose code was never sent."""
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
    """The address, or the /64 of an IPv6 address, which belongs to one customer."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return ""
    if isinstance(parsed, ipaddress.IPv6Address):
        if parsed.ipv4_mapped is not None:
            return str(parsed.ipv4_mapped)
        return str(ipaddress.ip_network((int(parsed), IPV6_PREFIX), strict=False))
    return str(parsed)
