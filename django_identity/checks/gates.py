"""What the gates of the site ask for."""

from django_identity import conf
from django_identity.conf.rules import Problem, Problems
from django_identity.gates import Gate, site_map
from django_identity.requirements import RequiredClaim


def problems() -> Problems:
    """What nobody could open: a scope that is never asked for, no application, a dropped claim."""
    for url, required in site_map.unlisted_scopes():
        yield Problem(
            "E075",
            f"A gate at {url} asks for the scope {required.scope!r}, and the application"
            f" {required.application!r} never asks the person for it: the gate would stay closed.",
            "Add the scope to LATER_SCOPES, or correct its name at the gate.",
        )
    for url, alias in site_map.of_no_application():
        yield Problem(
            "E075",
            f"A gate at {url} is of the application {alias!r}, which is not in DJANGO_IDENTITY.",
            "Correct the alias at the gate, or add the application.",
        )
    for gate, urls in site_map.guarded():
        if dropped := _dropped(gate):
            yield Problem(
                "E075",
                f"A gate at {urls[0]} asks for {', '.join(dropped)}, which KEEP_CLAIMS of the"
                f" application {gate.application!r} drops: the gate stays closed.",
                "Add the claim to KEEP_CLAIMS, or correct its name at the gate.",
            )


def _dropped(gate: Gate) -> list[str]:
    """The claims of the gate that are not stored."""
    if gate.application not in conf.aliases():
        return []
    kept = conf.application(gate.application).keep_claims
    if kept is None:
        return []
    claims = [each for each in gate.requirements if isinstance(each, RequiredClaim)]
    return sorted({claim.claim_type for claim in claims}.difference(kept))
