"""The reasons why a gate is closed. ``lifecycle.standing`` says which of them counts."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class Reason(StrEnum):
    """Why a gate is closed for a signed-in person."""

    NOT_LINKED = "not_linked"
    CONSENT_REVOKED = "consent_revoked"
    #: An operator of the site ended the connection.
    ENDED_BY_SITE = "ended_by_site"
    CONNECT_ONLY = "code_alone"
    #: The service verified the person and did not confirm this. It may not apply to them.
    NOT_CONFIRMED = "not_confirmed"
    #: What the service says could not be read yet.
    UNREAD = "unread"
    #: The newest credential failed a check. Only the people who run the site can mend that.
    UNVERIFIABLE = "unverifiable"
    RUN_OUT = "run_out"
    REVOKED = "revoked"
    OTHER_VALUE = "other_value"
    #: The service has not verified the person, or not enough.
    NOT_VERIFIED = "not_verified"
    #: The service did not accept the person's verification.
    REJECTED = "rejected"
    LOWER_LEVEL = "lower_level"
    #: The person has not allowed this yet.
    SCOPE_NOT_GIVEN = "scope_not_given"
    #: The person has not come back from the service lately.
    NOT_RECENT = "not_recent"
    #: Only on the account page: the site can no longer ask the service about the person.
    PERMISSION_ENDED = "permission_ended"


@dataclass(frozen=True, slots=True)
class Shortfall:
    """Why a gate is closed, ``since`` when, and what the claim says instead, if known.

    ``reference``: what the person tells the people who run the site, if only these can help.
    """

    reason: Reason
    since: datetime | None = None
    held: str = ""
    claim_type: str = ""
    reference: str = ""
