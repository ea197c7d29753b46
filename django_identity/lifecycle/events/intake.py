"""The intake: store a delivery once and apply it once, in one transaction.

An event of a subject without a linked identity is stored too. A sign-in that is in progress finds
it there (``events_meanwhile``).
"""

import hashlib
import random
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.db import DatabaseError, InterfaceError
from django.utils import timezone

from django_identity import background, database, exceptions, signals
from django_identity.conf import Application
from django_identity.handlers import EventType, handlers_of
from django_identity.lifecycle.events import effects, receipts, tallies
from django_identity.lifecycle.events.locks import LOCK_WAIT_SECONDS, transaction_of_event
from django_identity.lifecycle.events.rows import keyed
from django_identity.models import EventOutcome, LinkedIdentity, TallyName, WebhookEvent, digest
from django_identity.models.compiled import CompiledQuery
from django_identity.service.webhooks import SUBJECTS, Event, signing_secret
from django_identity.telemetry import Operation, measured

TRIES = 3
#: The members of the data that the spec and this package name.
KEPT_MEMBERS = (*SUBJECTS, "kyc_level", "status", "provider", "claim_type")
#: The ``error`` of an event of a known type without a subject, which nothing can be done about.
NAMES_NOBODY = "names_nobody"
LONGEST_PAUSE = 0.1
REPEATED = "repeated"

_body_digests = CompiledQuery(
    lambda event: WebhookEvent.objects.filter(event_digest=event).values_list("body_digest"),
    WebhookEvent._meta.get_field("event_digest"),
)


@dataclass(frozen=True, slots=True)
class Received:
    """An acknowledged delivery, for the log. ``row``: the stored event, or None for a repeat.

    ``event_type``: a type of the spec, or ``other``. ``outcome``: the event's, or ``repeated``.
    """

    event_type: str
    outcome: str
    row: int | None = None


def receive(application: Application, body: bytes, *, signature: str) -> Received:
    """Check, store and apply one delivery. After this call the effect is committed.

    Must run outside any transaction. Raises ``SignatureInvalid``, ``EventUnreadable``,
    ``EventConflict`` (which is counted), or ``StorageUnavailable`` if the database failed. After an
    error no event has changed.
    """
    with measured(Operation.EVENT, application=application.alias) as measurement:
        received = _receive(application, body, signature=signature)
        measurement.attributes["type"] = received.event_type
        measurement.outcome = received.outcome
    return received


def _receive(application: Application, body: bytes, *, signature: str) -> Received:
    event = _authentic(application, body, signature=signature)
    gives_up_at = time.monotonic() + LOCK_WAIT_SECONDS
    for tries_left in reversed(range(TRIES)):
        try:
            return _take_in(application, event, body)
        except (DatabaseError, InterfaceError) as error:
            # Any error: Django's report of it would contain the event's data.
            if not tries_left or time.monotonic() > gives_up_at:
                raise exceptions.StorageUnavailable(type(error).__name__) from error
            time.sleep(random.uniform(0, LONGEST_PAUSE))  # noqa: S311  not for secrecy
            database.connection().close_if_unusable_or_obsolete()
    raise AssertionError


def _authentic(application: Application, body: bytes, *, signature: str) -> Event:
    """The event in a signed body. Raises ``SignatureInvalid`` or ``EventUnreadable``, counted."""
    secret = signing_secret(body, signature=signature, secrets=application.webhook_secrets)
    if secret is None:
        tallies.collect(TallyName.BAD_SIGNATURE, application=application)
        raise exceptions.SignatureInvalid
    tallies.count_signed(application, secret)
    try:
        return Event.parse(body)
    except exceptions.EventUnreadable:
        tallies.collect(TallyName.BAD_EVENT, application=application)
        raise


def _row_of(application: Application, event: Event) -> WebhookEvent:
    """The row for the event, with the outcome of an event that takes effect or never can.

    A time-stamp from the future counts as 5 minutes from now, so that it does not outrank all later
    events.
    """
    now = timezone.now()
    is_known = event.event_type in effects.EFFECTS
    # Work remains after the response: an erasure, or the site's handlers.
    erases = event.event_type == EventType.DATA_DELETION_REQUESTED
    has_work = erases or bool(handlers_of(event.event_type))
    outcome, error = EventOutcome.APPLIED if is_known else EventOutcome.IGNORED, ""
    if is_known and not event.subject:
        outcome, error = EventOutcome.FAILED, NAMES_NOBODY
    subject = (application.alias, application.environment, event.subject)
    return WebhookEvent(
        application=application.alias,
        event_id=event.event_id,
        event_digest=digest(application.alias, event.event_id),
        event_type=event.event_type,
        occurred_at=min(event.occurred_at, now + effects.CLOCK_SKEW),
        received_at=now,
        subject=event.subject,
        subject_digest=digest(*subject) if event.subject else "",
        payload=_kept_payload(event),
        outcome=outcome,
        error=error,
        next_attempt_at=now if has_work and not error else None,
    )


def _kept_payload(event: Event) -> Mapping[str, Any] | None:
    """The stored part of the event's data: named members, or all if the type has a handler."""
    if handlers_of(event.event_type):
        return event.content
    if event.event_type not in effects.EFFECTS:
        return None
    return {name: event.content[name] for name in KEPT_MEMBERS if name in event.content}


def _is_due(identity: LinkedIdentity, event: WebhookEvent) -> bool:
    """Whether the event has changed something, and the re-fetch is due."""
    due_at = identity.refetch_due_at
    is_applied = event.outcome == EventOutcome.APPLIED
    return is_applied and due_at is not None and due_at <= event.received_at


def _take_in(application: Application, event: Event, body: bytes) -> Received:
    """Store the event, apply it, and send signals after the commit. Raises ``EventConflict``."""
    # The type for logs and metrics. Types that nobody knows could be anything, and many.
    known_type = event.event_type if event.event_type in effects.EFFECTS else "other"
    row, digests = _row_of(application, event), keyed(hashlib.sha256(body).hexdigest())
    row.body_digest = digests[0]
    with transaction_of_event(row.subject_digest):
        # Write first: SQLite then waits for the lock. After a read it would fail at once.
        if WebhookEvent.objects.insert(row):
            signals.announce(signals.event_received, WebhookEvent, event=row)
            inserted = dict(vars(row))
            identity = effects.apply_to_subject(row) if row.subject else None
            if row.event_type == EventType.DATA_DELETION_REQUESTED and row.subject:
                row.outcome = EventOutcome.APPLIED
                receipts.open_receipt(
                    application,
                    row.subject,
                    identity=identity,
                    requested_at=row.occurred_at,
                    event_id=row.event_id,
                )
            elif row.outcome != EventOutcome.APPLIED and row.subject:
                receipts.empty_if_forgotten(row, is_linked=identity is not None)
            row.save_changes(inserted)
            if row.next_attempt_at is not None:
                background.enqueue_on_commit(background.TaskName.RUN_EVENT_HANDLERS, row.pk)
            if identity is not None and _is_due(identity, row):
                background.enqueue_on_commit(background.TaskName.REFETCH_ONE, identity.pk)
            return Received(known_type, row.outcome, row.pk)
        [[stored]] = _body_digests.rows(row.event_digest)
    # Without a digest any body counts as a repeat.
    if stored in ("", *digests):
        return Received(known_type, REPEATED)
    tallies.add(TallyName.EVENT_CONFLICT, application=application)
    raise exceptions.EventConflict
