"""Events: their types, their bodies, and which applications get them (spec: Events)."""

import json
import secrets
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from django.db import transaction

from django_identity.sandbox import clock, switches
from django_identity.sandbox.events import deliveries
from django_identity.sandbox.models import Client, Consent, User


class EventType(StrEnum):
    """The event types of the specification."""

    KYC_VERIFIED = "kyc.verified"
    KYC_REJECTED = "kyc.rejected"
    CONSENT_GRANTED = "consent.granted"
    CONSENT_REVOKED = "consent.revoked"
    CLAIM_ISSUED = "claim.issued"
    CLAIM_REVOKED = "claim.revoked"
    DATA_DELETION_REQUESTED = "data.deletion_requested"


#: The beginning of a type -> the scopes of which an application needs one to hear of it.
COVERED_BY = {"kyc": {"kyc:read", "kyc:status"}, "claim": {"claims:read"}}


def body(
    event_type: str,
    event_id: str,
    timestamp: str,
    user_id: str,
    data: Mapping[str, object],
) -> str:
    """Return the JSON text of an event, of any type, whose UTF-8 bytes are signed and sent.

    The event names the person ``user_id`` where the switch says; an empty one names nobody.
    """
    event: dict[str, object] = {
        "event_type": event_type,
        "event_id": event_id,
        "timestamp": timestamp,
        "data": data,
    }
    if user_id:
        event = _naming(event, user_id, _place(event_type).split("."))
    return json.dumps(event, separators=(",", ":"), ensure_ascii=False)


def _place(event_type: str) -> str:
    """Return where an event names its person. The specification shows it for one type."""
    if event_type == EventType.KYC_VERIFIED:
        return "data.user_id"
    return switches.current().event_subject


def _naming(
    members: Mapping[str, Any],
    user_id: str,
    path: Sequence[str],
) -> dict[str, Any]:
    """Return ``members`` with the person's id at the end of ``path``, before the other members."""
    first, *rest = path
    named: object = user_id
    if rest:
        named = _naming(members.get(first, {}), user_id, rest)
    if first in members:
        return {**members, first: named}
    return {first: named, **members}


@transaction.atomic
def announce(
    kind: EventType,
    person: User,
    application: Client | None = None,
    **about: object,
) -> None:
    """Queue an event of type ``kind`` about ``person``, which is sent after the commit.

    Each application gets its own event with its own id. An application without a webhook address
    gets none.

    Args:
        kind: the type of the event.
        person: the person.
        application: the only credential set that gets the event. Without it, all with a consent of
            the person that covers the event get it; a deletion is also sent to those whose consent
            has ended.
        about: further members of the event's ``data``; JSON values only. A switch leaves them out,
            except for kyc.verified, whose members the specification shows.
    """
    if kind is not EventType.KYC_VERIFIED and not switches.current().event_details:
        about = {}
    clients = [application] if application else _concerned(person, kind)
    for client in clients:
        if client.webhook_url:
            event_id = new_event_id()
            text = body(kind, event_id, timestamp(clock.now()), person.subject, about)
            deliveries.queue(client, event_id, kind, person.subject, text)


def _concerned(person: User, kind: EventType) -> list[Client]:
    """Return the credential sets that hear of ``kind``."""
    consents = (
        Consent.objects.filter(user=person).select_related("client").order_by("pk")
    )
    if kind is not EventType.DATA_DELETION_REQUESTED:
        consents = consents.filter(revoked_at=None)
    covering = COVERED_BY.get(kind.partition(".")[0])
    clients: list[Client] = []
    for consent in consents:
        if covering is None or covering.intersection(consent.scopes):
            clients.append(consent.client)
    return clients


def new_event_id() -> str:
    """Return a new id."""
    return f"evt_{secrets.token_hex(16)}"


def timestamp(moment: datetime) -> str:
    """Return ``moment`` in UTC, in the form of ISO 8601 that the switch chooses."""
    match switches.current().event_timestamp:
        case "seconds":
            return clock.timestamp(moment)
        case "offset":
            return moment.astimezone(UTC).isoformat()
    return (
        moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    )
