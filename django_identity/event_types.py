"""The event types of the specification: a row of ``KINDS`` for each.

A further type is a member of ``EventType`` and a row of ``KINDS``; its name for people in
``texts.labels``; and the members of its data that are kept, in ``lifecycle.retention``. If no other
type has its effect, a member of ``Effect`` too, and a function in ``lifecycle.effects.EFFECTS``.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, StrEnum, auto


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

    STATE_LEVEL = auto()
    REFETCH = auto()
    REVOKE_CLAIM = auto()
    RECORD = auto()
    END_CONSENT = auto()
    ERASE = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """What all events of one type have in common.

    ``takes_away``: a withdrawal. It acts without its content, counts although it seems a little
    older, and must name its person.
    ``always``: it counts whatever has happened since.
    ``says_level``: it may say something about the KYC level, which is read again then.
    ``names_claim``: its data names a claim.
    ``makes_due``: the claims are re-fetched after it.
    ``wakes_worker``: a worker does its remaining work at once. The answer to a revocation waits for
    no broker, so that work waits for upkeep.
    """

    effect: Effect
    takes_away: bool = False
    always: bool = False
    says_level: bool = False
    names_claim: bool = False
    makes_due: bool = False
    wakes_worker: bool = True

    @property
    def ends_consent(self) -> bool:
        """Whether a sign-in that it overtakes is refused."""
        return self.effect in (Effect.END_CONSENT, Effect.ERASE)


KINDS: Mapping[str, Kind] = {
    EventType.KYC_VERIFIED: Kind(
        effect=Effect.STATE_LEVEL, says_level=True, makes_due=True
    ),
    EventType.KYC_REJECTED: Kind(
        effect=Effect.STATE_LEVEL,
        takes_away=True,
        says_level=True,
        makes_due=True,
    ),
    EventType.CLAIM_ISSUED: Kind(
        effect=Effect.REFETCH, names_claim=True, makes_due=True
    ),
    EventType.CLAIM_REVOKED: Kind(
        effect=Effect.REVOKE_CLAIM,
        takes_away=True,
        # The KYC claim may be revoked because the verification is invalid.
        says_level=True,
        names_claim=True,
        makes_due=True,
        wakes_worker=False,
    ),
    EventType.CONSENT_GRANTED: Kind(effect=Effect.RECORD),
    EventType.CONSENT_REVOKED: Kind(
        effect=Effect.END_CONSENT, takes_away=True, wakes_worker=False
    ),
    EventType.DATA_DELETION_REQUESTED: Kind(
        effect=Effect.ERASE, takes_away=True, always=True
    ),
}
#: A type that the specification does not have. Only the site's handlers do something with it.
UNKNOWN = Kind(effect=Effect.RECORD)

# Two types have other names in the service's policy text.
_OTHER_NAMES: Mapping[str, str] = {
    "consent_revoked": EventType.CONSENT_REVOKED,
    "user_deleted": EventType.DATA_DELETION_REQUESTED,
}


def canonical(event_type: str) -> str:
    """The spec's name for ``event_type``, which may be a name from the policy text."""
    return str(_OTHER_NAMES.get(event_type, event_type))


def kind_of(event_type: str) -> Kind:
    """The kind of ``event_type``; ``UNKNOWN`` for a type that the specification does not have."""
    return KINDS.get(event_type, UNKNOWN)


#: Types whose events may say something about the KYC level.
ABOUT_LEVEL = tuple(name for name, kind in KINDS.items() if kind.says_level)
#: Types that ask for the person's erasure.
ERASING = tuple(name for name, kind in KINDS.items() if kind.effect is Effect.ERASE)
