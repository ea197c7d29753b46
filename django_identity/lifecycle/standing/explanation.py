"""The state of every gate for one identity, and what an account needs next."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.utils import timezone

from django_identity import conf
from django_identity.lifecycle.standing.standing import (
    VERIFIED,
    Reason,
    Requirement,
    Shortfall,
    Standing,
    revocation_reason,
    standing_of,
)
from django_identity.models import Consent, LinkedIdentity, LinkedVia
from django_identity.texts import labels

CLAIM_TYPES = ("kyc_verified", "age_over_18", "country_resident", "unique_human")
# A grant that nothing refreshed until then needs the person.
SOON = timedelta(days=3)


@dataclass(frozen=True, slots=True)
class GateAnswer:
    """The state of the gate for ``asked``: open, or closed because of ``shortfall``.

    ``open_until``: when an open gate closes, if known.
    """

    asked: str
    shortfall: Shortfall | None
    open_until: datetime | None = None

    @property
    def is_open(self) -> bool:
        return self.shortfall is None


@dataclass(frozen=True, slots=True)
class Explanation:
    """One answer for each claim and each KYC level that a gate can ask for."""

    claims: tuple[GateAnswer, ...]
    levels: tuple[GateAnswer, ...]


def explained(identity: LinkedIdentity) -> Explanation:
    """The state of every gate for ``identity``, the same as on the person's own pages."""
    standing = _standing(identity)
    others = sorted({claim.claim_type for claim in standing.claims} - set(CLAIM_TYPES))
    claims = [answer for name in (*CLAIM_TYPES, *others) for answer in _answers(name, standing)]
    until = standing.kyc_holds_until
    levels = [
        GateAnswer(level, standing.level_shortfall(level), until) for level in labels.levels()
    ]
    return Explanation(tuple(claims), tuple(levels))


def shortfall_of_account(
    identity: LinkedIdentity | None,
    *,
    needs_reauthorization: bool = False,
    permission_ends_at: datetime | None = None,
) -> Shortfall | None:
    """What keeps the account from being fully verified, or None."""
    if identity is None:
        return Shortfall(Reason.NOT_LINKED)
    if identity.consent == Consent.REVOKED:
        return Shortfall(revocation_reason(identity.revoked_by), since=identity.consent_changed_at)
    if needs_reauthorization:
        return Shortfall(Reason.PERMISSION_ENDED)
    if identity.linked_via == LinkedVia.CONNECT or identity.connect_only:
        return Shortfall(Reason.CONNECT_ONLY)
    if permission_ends_at is not None and permission_ends_at <= timezone.now() + SOON:
        return Shortfall(Reason.PERMISSION_ENDS, since=permission_ends_at)
    expires_at = identity.credential_expires_at
    if expires_at is not None and expires_at <= timezone.now():
        return Shortfall(Reason.RUN_OUT, since=expires_at)
    return None if identity.kyc_status == VERIFIED else Shortfall(Reason.NOT_VERIFIED)


def _standing(identity: LinkedIdentity) -> Standing:
    """The standing of ``identity``. Without a configured application all gates are closed."""
    if identity.application not in conf.aliases():
        return Standing(barrier=Shortfall(Reason.NOT_SET_UP))
    if conf.application(identity.application).environment != identity.environment:
        return Standing(barrier=Shortfall(Reason.OTHER_ENVIRONMENT))
    return standing_of(identity.user, application=identity.application)


def _answers(claim_type: str, standing: Standing) -> Iterator[GateAnswer]:
    """The gate without a value; if it is closed, the gates that ask for a value."""
    asked = [Requirement(claim_type)]
    if not standing.has_claim(asked[0]):
        held = (claim for claim in standing.claims if claim.claim_type == claim_type)
        texts = {claim.text for claim in held if claim.text}
        values = [Requirement(claim_type, text) for text in sorted(texts)]
        asked = [value for value in values if standing.has_claim(value)] or asked
    for requirement in asked:
        shortfall = standing.shortfall(requirement)
        yield GateAnswer(str(requirement), shortfall, standing.open_until(requirement))
