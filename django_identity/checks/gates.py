"""What the gates of the site ask for."""

from django_identity.conf.rules import Problem, Problems
from django_identity.gates import site_map


def problems() -> Problems:
    """What nobody could open: a gate for a scope that is never asked for."""
    for url, required in site_map.unlisted_scopes():
        yield Problem(
            "E075",
            f"A gate at {url} asks for the scope {required.scope!r}, and the site"
            " never asks the person for it: the gate would stay closed.",
            "Add the scope to LATER_SCOPES, or correct its name at the gate.",
        )
