"""Stored events: written once, known again by a digest, emptied when nobody may be named."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from django.db import connection
from django.db.models import BigIntegerField, Case, Exists, QuerySet, Value, When

from django_identity.lifecycle.events import receipts
from django_identity.lifecycle.events.exchange import Exchange
from django_identity.lifecycle.events.statements import (
    Compiled,
    Slot,
    Statement,
    inserting,
    moment,
    selecting,
    standing_alone,
    text,
)
from django_identity.models import ErasureReceipt, EventOutcome, LinkedIdentity, WebhookEvent

#: What becomes of an event of which nobody may be named any more; its digest and its type stay.
EMPTIED: Mapping[str, Any] = {
    "payload": None,
    "subject": "",
    "subject_digest": "",
    "event_id": "",
    "error": "",
}


def _identities() -> QuerySet[LinkedIdentity]:
    return LinkedIdentity.objects.filter(subject_digest=text("subject_digest"))


# Who links a subject and who stores an event about it must not miss each other: whoever comes
# second waits here, and sees what the first one did. Elsewhere than on PostgreSQL the first write,
# or the look at an index, waits by itself.


def _locking(function: str) -> Statement:
    return Statement(lambda: (f"SELECT {function}(%s)", [Slot("lock", BigIntegerField())]))


_HOLD = _locking("pg_advisory_xact_lock")
#: Waits until nobody is linking the subject of the slot ``lock``, and keeps them waiting.
_HOLD_OFF = _locking("pg_advisory_xact_lock_shared")


def lock_of(subject_digest: str) -> int:
    """The subject's number among PostgreSQL's advisory locks."""
    return int.from_bytes(bytes.fromhex(subject_digest[:16] or "00"), signed=True)


def hold(subject_digest: str) -> None:
    """Until the end of this transaction no event about the subject is applied or overlooked."""
    if connection.vendor == "postgresql":
        _HOLD.run({"lock": lock_of(subject_digest)})


_INSERT = inserting(
    WebhookEvent,
    computed={
        "outcome": Case(
            When(Exists(_identities()), then=text("if_linked")), default=text("if_unknown")
        )
    },
)


@dataclass(frozen=True, slots=True)
class Filed:
    """How an event is filed, and whether it falls under an erasure of its subject.

    An ``outcome`` that nobody asked for is empty.
    """

    outcome: str
    is_erased: bool


@dataclass(frozen=True, slots=True)
class Stored:
    """``has_changed``: whether the change did something.

    ``filed``: None where only a ``look`` can tell. A repeat has done nothing.
    """

    has_changed: bool
    filed: Filed | None
    is_repeat: bool = False


def store(
    exchange: Exchange,
    values: Mapping[str, object],
    *,
    keys: int,
    asks_for_erasure: bool,
    change: Statement | None,
    is_last: bool,
) -> Stored:
    """Write an event down, first of all, and make the ``change`` that it asks for.

    Its outcome depends on whether the subject is linked: ``if_linked`` or ``if_unknown``. A request
    for erasure gets its receipt. On PostgreSQL a repeat is no error, which would put the event into
    the server's log; elsewhere it is an ``IntegrityError``. ``keys``: see ``look``. ``is_last``:
    nothing more is to be sent.
    """
    if connection.vendor == "postgresql":
        storing = _storing(keys, asks_for_erasure=asks_for_erasure, change=change)
        answer = exchange.send(_HOLD_OFF, storing, values=values, is_last=is_last)
        outcome, is_erased, has_changed = answer.row
        return Stored(has_changed, Filed(outcome or "", is_erased), is_repeat=not outcome)
    exchange.send(_INSERT, *[receipts.INSERT] * asks_for_erasure, values=values)
    has_changed = change is not None and exchange.send(change, values=values).concerned > 0
    return Stored(has_changed, filed=None)


@cache
def _storing(keys: int, *, asks_for_erasure: bool, change: Statement | None) -> Statement:
    """All that storing an event is, as one statement of PostgreSQL; of a repeat without outcome.

    The change sees what was there before the statement, and so what was there when nobody was
    linking the subject any more; to a row that somebody else was changing it is put anew.
    """

    def compiled() -> Compiled:
        insert, parameters = _INSERT.compiled()
        stored = f"{insert} ON CONFLICT (event_digest) DO NOTHING RETURNING outcome"
        parts: dict[str, Compiled] = {"stored": (stored, parameters)}
        if asks_for_erasure:
            parts["receipt"] = receipts.INSERT.compiled()
        if change is not None:
            sql, parameters = change.compiled()
            sql += " AND EXISTS (SELECT 1 FROM stored) RETURNING 1"
            parts["changed"] = sql, parameters
        named = ", ".join(f"{name} AS ({sql})" for name, (sql, _) in parts.items())
        is_erased, erased_parameters = standing_alone(_is_erased(keys))
        has_changed = "EXISTS (SELECT 1 FROM changed)" if change is not None else "FALSE"
        answer = f"SELECT (SELECT outcome FROM stored), {is_erased}, {has_changed}"  # noqa: S608  placeholders only
        given = [one for _, parameters in parts.values() for one in parameters]
        return f"WITH {named} {answer}", [*given, *erased_parameters]

    return Statement(compiled)


def _is_erased(keys: int) -> Exists | Value:
    if not keys:
        return Value(False)
    return Exists(
        ErasureReceipt.objects.filter(
            receipts.covering_event(moment("at")),
            subject_digest__in=[text(f"keyed_{number}") for number in range(keys)],
        )
    )


def look(values: Mapping[str, object], *, keys: int) -> Filed | None:
    """How an event is filed, if it is there.

    ``keys``: how many slots ``keyed_…`` there are for the subject's keyed digests.
    """
    row = _look(keys).row(values)
    return Filed(row[0], bool(row[1])) if row else None


@cache
def _look(keys: int) -> Statement:
    return selecting(
        lambda: (
            WebhookEvent.objects.filter(event_digest=text("digest"))
            .annotate(is_erased=_is_erased(keys))
            .values_list("outcome", "is_erased")
        )
    )


def settle(event_digest: str, *, is_late: bool, is_erased: bool) -> None:
    """What is left for an event that changed nothing.

    It came too late: something newer is known of the subject. Its subject is erased: it names
    nobody.
    """
    late: Mapping[str, Any] = {"outcome": EventOutcome.SUPERSEDED} if is_late else {}
    erased: Mapping[str, Any] = EMPTIED if is_erased else {}
    if late or erased:
        WebhookEvent.objects.filter(event_digest=event_digest).update(**late, **erased)


def empty(rows: QuerySet[WebhookEvent]) -> int:
    """Take out of these events who they are about and what they say; the digests stay."""
    return rows.update(**EMPTIED)
