"""Webhook events: stored first, then applied once, in a second transaction.

It locks the identity of the subject, or holds the subject, and so does a sign-in. So of the two at
one moment the second one sees the first: the event finds the identity, or the sign-in finds the
event (``heard_since``). A process that dies between the two transactions leaves an event without an
outcome, but with its content: upkeep applies it within a minute or two, unless the service delivers
it again before.

A repeat has the environment, the id, the type and the subject of a stored event. It leaves that row
as it is, does nothing if the row has an outcome (``apply``), and gets the same response. A handler
of the site that is done with the event does not run again.

``effects`` has the effect of each type, also of late events. The result does not depend on the
order and the number of deliveries.
"""

import logging
from datetime import datetime, timedelta
from functools import partial
from operator import attrgetter
from typing import NamedTuple

from django.db import Error
from django.db.models import Exists, Q
from django.utils import timezone

from django_identity import background, conf, database, exceptions, signals
from django_identity.event_types import KINDS, Effect, Event, kind_of, types_of
from django_identity.handlers import handlers_of
from django_identity.lifecycle.ground import attempts, clocks, kyc, retention
from django_identity.lifecycle.said import effects
from django_identity.logs import LogEvent, log
from django_identity.models import EventOutcome, LinkedIdentity, WebhookEvent
from django_identity.models.choices import WhyIgnored
from django_identity.service.webhooks import is_signed, parse_event

#: Two servers of a site have two clocks.
SERVERS_DIFFER_BY = timedelta(seconds=10)
#: The columns that applying an event may change.
CHANGED = (*retention.EMPTIED, "outcome", "attempts", "next_attempt_at")


class Applied(NamedTuple):
    """The row of an event, with its outcome. ``is_repeat``: it had one before."""

    row: WebhookEvent
    is_repeat: bool


def receive(body: bytes, *, signature: str) -> None:
    """Check, store, apply and log one delivery. After this call the effect is committed.

    An event that takes something away and names nobody is refused. The service delivers it again,
    perhaps after the site has mended ``EVENT_SUBJECT_PATHS``.

    Raises:

    - ``EventRefused``: the signature or the content is wrong, or the event names nobody
    - ``StorageUnavailable``: the database failed twice, so the service has to deliver again
    - ``RuntimeError``: inside a transaction, whose rollback would lose the event
    """
    application = conf.application()
    # Before anything is read or stored, because anybody can send to the address. The specification
    # demands it, too ("Webhook signature").
    if not is_signed(body, signature=signature, secrets=application.webhook_secrets):
        raise exceptions.EventRefused(code="signature_invalid")
    event = parse_event(body, subject_paths=application.event_subject_paths)
    try:
        row, is_repeat = database.tried_again(partial(_store_and_apply, event))
    except Error as error:
        raise exceptions.StorageUnavailable(database.name_of(error)) from error

    level = logging.INFO
    members = None
    if row.why_ignored is WhyIgnored.NAMES_NOBODY:
        level = logging.WARNING
        members = ",".join(event.members)
        if kind_of(row.event_type).takes_away:
            detail = f"{row.event_type} with {members}"
            raise exceptions.EventRefused(detail, code="names_nobody")
    log(
        LogEvent.EVENT_RECEIVED,
        level=level,
        # Types that nobody knows could be anything, and many, so the log does not name them.
        type=event.event_type if event.event_type in KINDS else "other",
        outcome="repeated" if is_repeat else row.outcome,
        row=row.pk,
        why=row.why_ignored,
        members=members,
    )


def _store_and_apply(event: Event) -> Applied:
    database.require_no_transaction(database.IN_STEPS)
    payload = retention.kept_of(event)
    return apply(WebhookEvent.objects.stored(event, payload))


def apply(stored: WebhookEvent) -> Applied:
    """Apply the stored event, unless it has an outcome. Upkeep does so after a crash."""
    with database.atomic():
        # A sign-in of the subject that is on its way is waited for, or it hears the event.
        identity = LinkedIdentity.objects.locked_or_held(stored.subject_digest)
        is_erasure = kind_of(stored.event_type).effect is Effect.ERASE
        if identity is not None and is_erasure:
            # An erasure locks the user: before the event, as whoever deletes a user does.
            database.locked_account(identity.user_id)
        rows = WebhookEvent.objects.select_for_update()
        if is_erasure:
            others = retention.others_with_content(stored.subject_digest)
            said = {"others_have_content": Exists(others)}
            rows = rows.annotate(**said)
        # By the digest: MySQL tells no key after the insert.
        row = rows.get(event_digest=stored.event_digest)
        if row.outcome:
            return Applied(row, is_repeat=True)
        _apply(row, identity)
        return Applied(row, is_repeat=False)


def heard_since(subject_digest: str, began_at: datetime) -> list[WebhookEvent]:
    """The events since a sign-in or a code began, and every revocation of a claim.

    The caller holds the subject. An event that found nobody counts if it came shortly before: two
    servers of a site have two clocks. Raises ``LinkingRefused`` if the consent ended since.
    """
    revoking = Q(event_type__in=types_of(Effect.REVOKE_CLAIM))
    lately = Q(received_at__gte=began_at - SERVERS_DIFFER_BY)
    events = WebhookEvent.objects.filter(
        revoking | lately,
        subject_digest=subject_digest,
    )
    # There are few. A database would sort them no faster, and is asked with each sign-in.
    heard = sorted(events, key=attrgetter("occurred_at", "event_digest"))
    for row in overtaking(heard, began_at):
        kind = kind_of(row.event_type)
        is_erasure = kind.effect is Effect.ERASE
        counts = is_erasure or clocks.may_be_newer(row.counts_from, than=began_at)
        if kind.ends_consent and counts:
            raise exceptions.LinkingRefused(code="consent_withdrawn")
    return heard


def overtaking(heard: list[WebhookEvent], began_at: datetime) -> list[WebhookEvent]:
    """The events of ``heard`` that came since the sign-in or the code began."""
    found_nobody = began_at - SERVERS_DIFFER_BY
    return [
        row
        for row in heard
        if row.received_at >= began_at
        or (
            row.why_ignored is WhyIgnored.NOT_LINKED and row.received_at >= found_nobody
        )
    ]


def apply_again(identity: LinkedIdentity, rows: list[WebhookEvent]) -> bool:
    """Apply events once more, to the data of a sign-in or a code that they overtook.

    Returns whether there were any. The caller has locked the identity, and saves it. An event
    without an outcome is left out: its own transaction waits for this one, and finds the identity.
    """
    applied = [row for row in rows if row.outcome]
    for row in applied:
        effects.outcome_of(identity, row)
        row.save(update_fields=["payload"])
    return bool(applied)


def _apply(row: WebhookEvent, identity: LinkedIdentity | None) -> None:
    """Apply a locked event to the locked identity of its subject, and save its outcome.

    An event about a subject that is not linked keeps its type, its times and its digests only.
    """
    if identity is None:
        row.set_columns(retention.EMPTIED)
        row.outcome = effects.outcome_for_nobody(row)
    else:
        before = identity.kyc_state
        row.outcome = effects.outcome_of(identity, row)
        # Not if the consent ended: of that another signal tells.
        if not kind_of(row.event_type).ends_consent:
            kyc.announce_change(identity, before=before)
    _set_due(row, identity)
    changed = {name: getattr(row, name) for name in CHANGED}
    # By a statement, which sends no signal: a receiver that raises would undo a revocation.
    WebhookEvent.objects.filter(pk=row.pk).update(**changed)
    signals.announce(signals.event_received, WebhookEvent, event=row)
    _wake(row, identity)


def _set_due(row: WebhookEvent, identity: LinkedIdentity | None) -> None:
    """Make the row due if somebody has work with it: the account's erasure, or the handlers."""
    if attempts.is_taken(row):
        # Its worker has it until ``next_attempt_at``. A second one would run one handler twice.
        return
    # Each failure so far was one to apply it.
    row.attempts = 0
    row.next_attempt_at = None
    # An erasure has emptied its own event.
    is_erasure = kind_of(row.event_type).effect is Effect.ERASE
    has_handlers = bool(row.subject and handlers_of(row.event_type))
    if identity is not None and (is_erasure or has_handlers):
        row.next_attempt_at = timezone.now()


def _wake(row: WebhookEvent, identity: LinkedIdentity | None) -> None:
    """Wake workers after the commit for what is due now."""
    # The service waits for the answer to a revocation, so no broker is asked. Upkeep finds the row.
    wakes_worker = kind_of(row.event_type).wakes_worker
    if not wakes_worker and not background.is_eager():
        return

    # First the re-fetch: a handler may take long, and there may be one worker.
    is_applied = row.outcome == EventOutcome.APPLIED
    if identity is not None and is_applied and identity.is_due:
        background.nudge_on_commit(background.TaskName.REFETCH_DUE, 1, identity.pk)

    is_due = row.next_attempt_at is not None
    if is_due and not attempts.is_taken(row):
        background.nudge_on_commit(background.TaskName.RUN_HANDLERS, row.pk)
