"""Events: their types and their bodies (spec: Events). Pure; needs no database."""

import json
import secrets
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from enum import StrEnum

from django_identity.sandbox.instruments import clock, switches
from django_identity.sandbox.instruments.switches import EventJson, EventTimestamp


class EventType(StrEnum):
    """The event types of the specification."""

    KYC_VERIFIED = "kyc.verified"
    KYC_REJECTED = "kyc.rejected"
    CONSENT_GRANTED = "consent.granted"
    CONSENT_REVOKED = "consent.revoked"
    CLAIM_ISSUED = "claim.issued"
    CLAIM_REVOKED = "claim.revoked"
    DATA_DELETION_REQUESTED = "data.deletion_requested"


@dataclass(frozen=True, slots=True)
class Event:
    """The content of one webhook request. ``event_type`` is a text, so any type can be sent."""

    event_type: str
    event_id: str
    timestamp: str
    data: Mapping[str, object]

    def body(self) -> str:
        """Return the JSON text whose UTF-8 bytes are signed and sent."""
        if switches.current().event_json is EventJson.INDENTED:
            return json.dumps(asdict(self), indent=2)
        return json.dumps(asdict(self), separators=(",", ":"), ensure_ascii=False)


def new_event(event_type: EventType, user_id: str, about: Mapping[str, object]) -> Event:
    """Create an event of type ``event_type`` about ``user_id`` with the current time.

    Args:
        event_type: the type.
        user_id: the person.
        about: further members of ``data``. A switch leaves them out, except for kyc.verified, whose
            members the specification shows.
    """
    shown = event_type is EventType.KYC_VERIFIED or switches.current().event_details
    return Event(
        event_type=event_type.value,
        event_id=new_event_id(),
        timestamp=timestamp(clock.now()),
        data={"user_id": user_id, **(about if shown else {})},
    )


def new_event_id() -> str:
    return f"evt_{secrets.token_hex(16)}"


def timestamp(moment: datetime) -> str:
    """Return ``moment`` in UTC, in the form of ISO 8601 that the switch chooses."""
    match switches.current().event_timestamp:
        case EventTimestamp.SECONDS:
            return clock.timestamp(moment)
        case EventTimestamp.OFFSET:
            return moment.astimezone(UTC).isoformat()
        case EventTimestamp.MILLISECONDS:
            text = moment.astimezone(UTC).isoformat(timespec="milliseconds")
            return text.replace("+00:00", "Z")
