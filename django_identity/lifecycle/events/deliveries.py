"""Count what a delivery leaves no row of: a refusal, and which webhook secret signed it.

A process collects its counts for some seconds, so that a flood of refused deliveries costs few
writes. What a process has collected when it ends is lost; the first delivery counts at once.
"""

import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache

from django.conf import settings
from django.db import DatabaseError
from django.utils.crypto import salted_hmac

from django_identity.conf import Application
from django_identity.lifecycle.events import tallies

COLLECTED_FOR = 10.0
SALT = "django_identity.webhook_secret"


@dataclass(slots=True)
class _Collected:
    """The counts of this process that are not written yet, and when it wrote the last ones."""

    counts: Counter[str] = field(default_factory=Counter)
    written_at: float = -COLLECTED_FOR


_collected: dict[str, _Collected] = {}
_writing = threading.Lock()


def count(application: Application, name: str) -> None:
    """Count ``name`` today. Must run outside any transaction."""
    with _writing:
        ours = _collected.setdefault(application.alias, _Collected())
        ours.counts[name] += 1
        now = time.monotonic()
        if now < ours.written_at + COLLECTED_FOR:
            return
        ours.written_at = now
        counts, ours.counts = ours.counts, Counter()
    # A count is worth no error: the delivery has its answer already.
    with suppress(DatabaseError):
        for each, number in counts.items():
            tallies.add(each, application=application, count=number)


def count_signed(application: Application, secret: str) -> None:
    """Count a delivery that ``secret`` signed, if there are several secrets."""
    if len(application.webhook_secrets) > 1:
        count(application, next(secret_names(secret)))


def secret_names(secret: str) -> Iterator[str]:
    """The name of ``secret`` in the tallies, under the site's current key, then its older keys."""
    for key in (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS):
        yield _secret_name(secret, str(key))


def forget() -> None:
    """Forget what this process has collected. For tests."""
    _collected.clear()


@cache
def _secret_name(secret: str, key: str) -> str:
    return f"secret.{salted_hmac(SALT, secret, secret=key, algorithm='sha256').hexdigest()[:8]}"
