"""What the gates of the site ask for."""

from collections.abc import Collection

from django_identity import conf
from django_identity.conf.rules import Problem, Problems
from django_identity.gates import Gate
from django_identity.instruments import gate_map
from django_identity.requirements import RequiredClaim


def problems() -> Problems:
    """What stays closed for all: a scope outside the settings, a dropped claim."""
    for url, required in gate_map.unlisted_scopes():
        yield Problem(
            "E075",
            f"A gate at {url} asks for the scope {required.scope!r}, and the site"
            " never asks the person for it: the gate would stay closed.",
            "Add the scope to LATER_SCOPES, or correct its name at the gate.",
        )
    kept = conf.application().keep_claims
    if kept is None:
        return
    for gate, urls in gate_map.guarded():
        if dropped := _dropped(gate, kept):
            yield Problem(
                "E075",
                f"A gate at {urls[0]} asks for {', '.join(dropped)}, which KEEP_CLAIMS"
                " drops: the gate stays closed.",
                "Add the claim to KEEP_CLAIMS, or correct its name at the gate.",
            )


def _dropped(gate: Gate, kept: Collection[str]) -> list[str]:
    """The claims of the gate outside ``KEEP_CLAIMS``."""
    claims = [each for each in gate.requirements if isinstance(each, RequiredClaim)]
    return sorted({claim.claim_type for claim in claims}.difference(kept))
