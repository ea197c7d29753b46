"""What was heard of a subject while somebody was on the way here with it, and obeying it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Exists, Q, QuerySet
from django.utils import timezone

from django_identity.conf import Application
from django_identity.exceptions import ConsentWithdrawn
from django_identity.handlers import WITHDRAWALS
from django_identity.lifecycle.events import effects, receipts, rows
from django_identity.lifecycle.events.effects import CLOCK_SKEW, Happening
from django_identity.models import Consent, ErasureReceipt, LinkedIdentity, WebhookEvent

Changes = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Since:
    """When the person set out, by our clock, and when they consented.

    Somebody who signs in consents after they set out: a revocation that we had heard of by then is
    over, even if its time-stamp names the same second. A Connect answer says its own moment.
    """

    began_at: datetime
    consented_at: datetime


def hold(application: Application, subject: str) -> None:
    """Before a subject is linked that was not: no event about it slips by until the commit."""
    rows.hold(effects.subject_digest(application, subject))


def save_undisturbed(identity: LinkedIdentity, since: Since, changes: Changes) -> bool:
    """Write ``changes``, if nothing was heard of the subject since the person set out.

    An event that commits while this waits for the row is seen in the row's own column, not among
    the events that this statement's snapshot knows.
    """
    events = WebhookEvent.objects.of_subject_since(identity.subject_digest, since.began_at)
    undisturbed = LinkedIdentity.objects.filter(
        ~Exists(events.order_by()),
        ~Exists(_erasures(identity, since)),
        pk=identity.pk,
        last_event_digest=identity.last_event_digest,
    )
    return _written(undisturbed, since, changes)


def save(identity: LinkedIdentity, since: Since, changes: Changes) -> None:
    """Write ``changes``, and have the row: who comes with an event later waits for it.

    Raises ``ConsentWithdrawn``.
    """
    if not _written(LinkedIdentity.objects.filter(pk=identity.pk), since, changes):
        raise ConsentWithdrawn


def heed(application: Application, identity: LinkedIdentity, since: Since) -> None:
    """Obey, in the order in which it happened, what was heard since the person set out.

    Raises ``ConsentWithdrawn`` if the consent was taken back, or everything is to be erased.
    """
    if _erasures(identity, since).exists():
        raise ConsentWithdrawn
    events = WebhookEvent.objects.of_subject_since(identity.subject_digest, since.began_at)
    # MariaDB waits here for an event that is just being stored.
    for event in list(events.select_for_update()):
        if event.event_type not in WITHDRAWALS:
            effects.reapply(Happening.of_stored(application, event))
        elif event.occurred_at >= since.began_at - CLOCK_SKEW:
            raise ConsentWithdrawn
    identity.refresh_from_db()


def _erasures(identity: LinkedIdentity, since: Since) -> QuerySet[ErasureReceipt]:
    """Erasures of the subject that are pending, or were done since."""
    of_subject = receipts.of_subject(identity.subject_digest)
    return of_subject.filter(receipts.covering(since.began_at))


def _written(rows: QuerySet[LinkedIdentity], since: Since, changes: Changes) -> bool:
    """Write ``changes`` into ``rows``, unless the consent was revoked since."""
    revoked = Q(consent=Consent.REVOKED, consent_changed_at__gte=since.consented_at)
    standing = rows.exclude(revoked).exclude(revoked_at__gte=since.consented_at)
    return bool(standing.update(updated_at=timezone.now(), **changes))
