"""All data of one linked identity that an operator may see, without tokens and credentials."""

from __future__ import annotations

from dataclasses import dataclass

from django_identity.lifecycle.operators.timeline import Happening, timeline_of
from django_identity.lifecycle.standing.explanation import GateAnswer, explained
from django_identity.models import LinkedIdentity, StoredClaim, TokenGrant

MOST_CLAIMS = 200


@dataclass(frozen=True, slots=True)
class Inspection:
    """The report. If ``grant`` is None, nothing can be re-fetched; its tokens are not loaded."""

    gates: tuple[GateAnswer, ...]
    claims: tuple[StoredClaim, ...]
    timeline: tuple[Happening, ...]
    grant: TokenGrant | None


def report_on(identity: LinkedIdentity) -> Inspection:
    """Report on ``identity``: gates, claims, state of the grant, and the last hundred entries."""
    claims = StoredClaim.objects.filter(identity=identity).order_by("claim_type", "provider")
    answers = explained(identity)
    grants = TokenGrant.objects.defer("access_token", "refresh_token")
    return Inspection(
        gates=(*answers.claims, *answers.levels),
        claims=tuple(claims[:MOST_CLAIMS]),
        timeline=timeline_of(identity),
        grant=grants.filter(identity=identity).first(),
    )
