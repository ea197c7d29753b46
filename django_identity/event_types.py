"""The event types of the specification, a row of ``KINDS`` for each, and one ``Event``.

A further type is a member of ``EventType`` and a row of ``KINDS``. Its name for people is in
``texts.labels``. A new effect is a member of ``Effect`` and a function in
``lifecycle.said.effects.EFFECTS``.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum, StrEnum, auto

from django_identity.strict_json import JSONObject


class EventType(StrEnum):
    """The event types of the spec. An event of another type is stored and ignored."""

    KYC_VERIFIED = "kyc.verified"
    KYC_REJECTED = "kyc.rejected"
    CONSENT_GRANTED = "consent.granted"
    CONSENT_REVOKED = "consent.revoked"
    CLAIM_ISSUED = "claim.issued"
    CLAIM_REVOKED = "claim.revoked"
    DATA_DELETION_REQUESTED = "data.deletion_requested"


class Effect(Enum):
    """What events of a type do."""

    REFETCH = auto()
    REJECT = auto()
    REVOKE_CLAIM = auto()
    RECORD = auto()
    REVOKE_CONSENT = auto()
    ERASE = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """What all events of one type have in common.

    ``about_kyc``: its data is about KYC. It is kept under consent to that alone. ``wakes_worker``:
    a worker does its remaining work at once. The answer to a revocation waits for no broker, so
    that work is upkeep's.
    """

    effect: Effect
    about_kyc: bool = False
    wakes_worker: bool = True

    @property
    def takes_away(self) -> bool:
        """Whether it acts at once, and so must name its person. The service is asked of others."""
        return self.effect not in (Effect.REFETCH, Effect.RECORD)

    @property
    def ends_consent(self) -> bool:
        """Whether a sign-in that it overtakes is refused."""
        return self.effect in (Effect.REVOKE_CONSENT, Effect.ERASE)


KINDS: Mapping[str, Kind] = {
    EventType.KYC_VERIFIED: Kind(effect=Effect.REFETCH, about_kyc=True),
    EventType.KYC_REJECTED: Kind(effect=Effect.REJECT, about_kyc=True),
    EventType.CLAIM_ISSUED: Kind(effect=Effect.REFETCH),
    EventType.CLAIM_REVOKED: Kind(effect=Effect.REVOKE_CLAIM, wakes_worker=False),
    EventType.CONSENT_GRANTED: Kind(effect=Effect.RECORD),
    EventType.CONSENT_REVOKED: Kind(effect=Effect.REVOKE_CONSENT, wakes_worker=False),
    EventType.DATA_DELETION_REQUESTED: Kind(effect=Effect.ERASE),
}
#: A type that the specification does not have. Only the site's handlers do something with it.
UNKNOWN = Kind(effect=Effect.RECORD)

# Two types have other names in the service's policy text.
_OTHER_NAMES: Mapping[str, str] = {
    "consent_revoked": EventType.CONSENT_REVOKED,
    "user_deleted": EventType.DATA_DELETION_REQUESTED,
}


def canonical(event_type: str) -> str:
    """The spec's name for ``event_type``: it may be of the policy text, or in other letters.

    Another type is left as it is.
    """
    name = event_type.lower()
    name = str(_OTHER_NAMES.get(name, name))
    return name if name in KINDS else event_type


def kind_of(event_type: str) -> Kind:
    """The kind of ``event_type``; ``UNKNOWN`` for a type outside the specification."""
    return KINDS.get(event_type, UNKNOWN)


def types_of(effect: Effect) -> list[str]:
    """The types whose events have this effect."""
    return [name for name, kind in KINDS.items() if kind.effect is effect]


@dataclass(frozen=True, slots=True)
class Event:
    """The content of one delivery. ``content`` is the event's ``data``.

    ``subject`` is empty if the event names nobody. Then ``members`` has the paths of all members,
    and leaves out their values.
    """

    event_id: str = field(repr=False)
    event_type: str
    occurred_at: datetime
    subject: str = field(repr=False)
    content: JSONObject = field(repr=False)
    members: tuple[str, ...] = ()
