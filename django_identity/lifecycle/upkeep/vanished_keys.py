"""Re-fetch credentials whose signing key has left the service's key set."""

from __future__ import annotations

from collections.abc import Iterator

from django.db.models import QuerySet
from django.utils import timezone

from django_identity.conf import Application
from django_identity.exceptions import KeysUnavailable
from django_identity.lifecycle.upkeep import key_sets
from django_identity.models import LinkedIdentity

MOST_KIDS = 50
MOST_MARKED = 2000


def mark_vanished_keys(application: Application) -> int:
    """Make identities due whose credentials were signed by unpublished keys. Returns their number.

    It costs one look-up in an index for each key in use, and changes a limited number at a time.
    """
    try:
        published = key_sets.current(application).kids
    except KeysUnavailable:
        return 0
    mine = LinkedIdentity.objects.filter(
        application=application.alias, environment=application.environment
    )
    vanished = [kid for kid in _kids_in_use(mine) if kid not in published]
    return sum(_make_due(mine.filter(credential_kid=kid)) for kid in vanished)


def _kids_in_use(rows: QuerySet[LinkedIdentity]) -> Iterator[str]:
    """Each ``kid`` of a stored credential, with one look-up in the index for each."""
    kid = ""
    for _ in range(MOST_KIDS):
        following = rows.filter(credential_kid__gt=kid).order_by("credential_kid")
        found = following.values_list("credential_kid", flat=True).first()
        if found is None:
            return
        kid = found
        yield kid


def _make_due(rows: QuerySet[LinkedIdentity]) -> int:
    """Make ``rows`` due, except failing ones, which have their own pause."""
    now = timezone.now()
    waiting = rows.filter(refetch_due_at__gt=now, refetch_failures=0)
    ids = list(waiting.values_list("pk", flat=True)[:MOST_MARKED])
    return LinkedIdentity.objects.filter(pk__in=ids, refetch_due_at__gt=now).update(
        refetch_due_at=now
    )
