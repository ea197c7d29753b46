"""A site with people in every state, as a process of its own.

``python -m tests.example_project.site PORT FILE`` writes their session keys to FILE, then serves.
``running_site`` starts it: the example project, or ``settings`` of another module.
"""

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import django
from django.core.management import call_command
from django.core.servers.basehttp import WSGIRequestHandler

from example_project.demo.processes import HOST, free_port, running

EXAMPLE = "example_project.settings"
BARE = "tests.example_project.bare_settings"
PATIENT = "tests.example_project.patient_settings"


@dataclass(frozen=True)
class Site:
    """Where it answers, and the session key of each person of ``people.settle``."""

    address: str
    sessions: dict[str, str]


@contextmanager
def running_site(
    folder: Path,
    service: dict[str, Any],
    *,
    settings: str = EXAMPLE,
    **env: str,
) -> Iterator[Site]:
    """The site, talking to ``service`` (the values of ``DJANGO_IDENTITY``)."""
    port, people = free_port(), folder / "people.json"
    address = f"http://{HOST}:{port}"
    given = {
        "DJANGO_SETTINGS_MODULE": settings,
        "DATABASE_URL": f"sqlite:///{folder / 'site.sqlite3'}",
        "DEBUG": "1",
        **{f"IDENTITY_{name}": str(value) for name, value in service.items()},
        **env,
    }
    command = ("-m", "tests.example_project.site", str(port), str(people))
    with running(*command, ready_at=f"{address}/", env=given):
        yield Site(address, json.loads(people.read_text()))


def main(port: str, people: str) -> None:
    django.setup()
    # Its models can be imported only now.
    from django_identity.lifecycle.arriving import connect  # noqa: PLC0415
    from tests.example_project.people import settle, settle_operators  # noqa: PLC0415

    if os.environ["DJANGO_SETTINGS_MODULE"] == PATIENT:
        connect.MOST_TRIES = 1000
    call_command("migrate", verbosity=0)
    Path(people).write_text(json.dumps(settle() | settle_operators()))
    # Else an answer on a kept connection waits 40 ms, until its head has been acknowledged.
    WSGIRequestHandler.disable_nagle_algorithm = True
    call_command("runserver", f"{HOST}:{port}", use_reloader=False)


if __name__ == "__main__":
    main(*sys.argv[1:])
