"""Events of a subject that arrive during a sign-in with this subject."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Exists, Q
from django.utils import timezone

from django_identity.exceptions import ConsentWithdrawn
from django_identity.handlers import WITHDRAWALS
from django_identity.lifecycle.events import effects, receipts, rows
from django_identity.models import Consent, LinkedIdentity

LEASE = frozenset({"refetch_taken_until", "refetch_started", "refetch_failures"})
Changes = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Since:
    """When the person started, by the site's clock.

    The consent to a sign-in comes after the start. A revocation that was received before the start
    is therefore older, whatever its time-stamp. ``answered_at``: the time of a Connect answer, by
    the service's clock, which may be older than a revocation.
    """

    began_at: datetime
    answered_at: datetime | None = None

    @property
    def earliest(self) -> datetime:
        """A revocation at this time or later is newer than the consent."""
        return self.answered_at or self.began_at


def save_if_no_event_came(
    identity: LinkedIdentity, since: Since, changes: Changes, *, before: Changes
) -> bool:
    """Save ``changes`` to a granted row if no event of the subject arrived since the start.

    ``before``: the row as it was read. Columns that keep their value are not written: SQLite would
    write each index of such a column anew. A worker that leases the row leaves its ``updated_at``
    as it is, so the columns of the lease are always written.

    If an event, or another sign-in, commits while this statement waits for the row, the row's own
    time shows it; the statement's snapshot does not contain the event. An erasure needs no search:
    its request revokes the consent, and its end deletes the row.
    """
    revoked_at = before["revoked_at"]
    is_withdrawn = revoked_at is not None and revoked_at >= since.earliest
    is_new = identity.created_at >= since.began_at
    if before["consent"] != Consent.GRANTED or is_withdrawn or is_new:
        return False
    undisturbed = LinkedIdentity.objects.filter(
        ~Exists(rows.since(identity.subject_digest, since.began_at)),
        pk=identity.pk,
        consent=Consent.GRANTED,
        updated_at=identity.updated_at,
    )
    new = {name: value for name, value in changes.items() if name in LEASE or value != before[name]}
    return bool(undisturbed.update(updated_at=timezone.now(), **new))


def save_unless_revoked(identity: LinkedIdentity, since: Since, changes: Changes) -> None:
    """Save ``changes`` and so lock the row for later events.

    Raises ``ConsentWithdrawn`` if the consent was revoked since the start.
    """
    standing = LinkedIdentity.objects.filter(pk=identity.pk)
    standing = standing.exclude(revoked_at__gte=since.earliest)
    if since.answered_at is not None:
        revoked = Q(consent=Consent.REVOKED, consent_changed_at__gte=since.answered_at)
        standing = standing.exclude(revoked)
    if not standing.update(updated_at=timezone.now(), **changes):
        raise ConsentWithdrawn


def apply_events_since(identity: LinkedIdentity, since: Since) -> None:
    """Apply the events that arrived since the start, in the order of their times.

    The caller has locked the identity's row. Raises ``ConsentWithdrawn`` if the consent was revoked
    or an erasure was requested.
    """
    erasures = receipts.of_subject(identity.subject_digest)
    if erasures.filter(receipts.covering(since.began_at)).exists():
        raise ConsentWithdrawn
    identity.refresh_from_db()
    events = rows.since(identity.subject_digest, since.began_at)
    # MariaDB waits here for an event that is just being stored.
    for event in list(events.order_by("occurred_at", "event_digest").select_for_update()):
        if event.event_type not in WITHDRAWALS:
            before = dict(vars(event))
            effects.apply(identity, event)
            event.save_changes(before)
        elif event.occurred_at >= since.began_at - effects.CLOCK_SKEW:
            raise ConsentWithdrawn
    identity.save()
