"""The limits of attempts in ten minutes: Connect codes and started sign-ins.

The counters are in the cache. Each starts with the first attempt and expires ten minutes later. If
the cache does not answer, attempts are allowed and the failure is logged. Cache keys contain
digests, no user, no browser and no address.
"""

import ipaddress
from collections.abc import Mapping

from django.contrib.auth.models import AbstractBaseUser
from django.utils.crypto import salted_hmac

from django_identity.conf import Application
from django_identity.exceptions import TooManyStarts, TooManyTries
from django_identity.service import shared_state

MOST_TRIES = 5
# People share an address: a household, a school, a mobile network.
MOST_TRIES_OF_NETWORK = 50
WINDOW = 600
IPV6_PREFIX = 64


def take(
    application: Application, *, user: AbstractBaseUser | None, address: str
) -> tuple[str, ...]:
    """Count a Connect code of ``user`` from ``address``. Returns the argument for ``give_back``.

    Raises ``TooManyTries`` without counting. People who are not signed in and have no known address
    share one counter.
    """
    limits = {} if user is None else {f"user/{user.pk}": MOST_TRIES}
    network = _network(address)
    if network or user is None:
        limits[f"address/{network}"] = MOST_TRIES_OF_NETWORK
    counters: tuple[str, ...] = ()
    for subject, most in limits.items():
        taken = _count(application, {subject: most})
        if taken is None:
            give_back(counters)
            raise TooManyTries(f"{most} in {WINDOW} s", retry_after=WINDOW, most=most)
        counters += taken
    return counters


def take_start(application: Application, *, browser_key: str, address: str) -> None:
    """Count a sign-in that this browser starts. Raises ``TooManyStarts`` without counting.

    An unknown address has no counter of its own: all visitors of the site would share it.
    """
    limits = {}
    if application.starts_per_browser is not None:
        limits[f"start/browser/{browser_key}"] = application.starts_per_browser
    network = _network(address)
    if network and application.starts_per_address is not None:
        limits[f"start/address/{network}"] = application.starts_per_address
    if _count(application, limits) is None:
        raise TooManyStarts(retry_after=WINDOW)


def give_back(counters: tuple[str, ...]) -> None:
    """Do not count an attempt that was refused, or whose code was never sent."""
    for counter in counters:
        shared_state.take_back(counter)


def _count(application: Application, limits: Mapping[str, int]) -> tuple[str, ...] | None:
    """Count an attempt under each subject of ``limits``. Above a limit: count nothing, and None."""
    counters: tuple[str, ...] = ()
    for subject, most in limits.items():
        named = f"{application.alias}/{subject}"
        hashed = salted_hmac("django_identity.limits", named, algorithm="sha256").hexdigest()
        counters += (f"django_identity.limits.{hashed}",)
        if shared_state.count(counters[-1], seconds=WINDOW) > most:
            give_back(counters)
            return None
    return counters


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
