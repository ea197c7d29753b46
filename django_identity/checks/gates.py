"""What the gates of the site ask for."""

from django_identity.conf.rules import Problem, Problems
from django_identity.instruments import gate_map


def problems() -> Problems:
    """What nobody could open: a gate for a scope that is never asked for, or of no application."""
    for url, required in gate_map.unlisted_scopes():
        yield Problem(
            "E075",
            f"A gate at {url} asks for the scope {required.scope!r}, and the application"
            f" {required.application!r} never asks the person for it: the gate would stay closed.",
            "Add the scope to LATER_SCOPES, or correct its name at the gate.",
        )
    for url, alias in gate_map.of_no_application():
        yield Problem(
            "E075",
            f"A gate at {url} is of the application {alias!r}, which is not in DJANGO_IDENTITY.",
            "Correct the alias at the gate, or add the application.",
        )
