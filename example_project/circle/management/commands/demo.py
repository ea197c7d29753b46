"""``manage.py demo`` starts sandbox, site and worker. ``--check`` walks through the site."""

from __future__ import annotations

import json
import os
import secrets
import shlex
import signal
import tempfile
from argparse import ArgumentParser
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from django.core.management.base import BaseCommand, CommandError

from example_project.demo import trusted
from example_project.demo.connect_walk import ConnectWalk
from example_project.demo.event_walk import EventWalk
from example_project.demo.members import MEMBERS, OPERATOR, SUPERUSER, Member
from example_project.demo.processes import (
    HOST,
    DemoError,
    free_port,
    require_free,
    running,
)
from example_project.demo.site import HISTORY, OPERATORS
from example_project.demo.walk import StepFailed, Walk

#: What the sandbox calls itself on its pages.
SERVICE = "Sandbox Identity"
#: Her subject in every sandbox.
ADA = "00000000-0000-4000-8000-000000000001"


class Command(BaseCommand):
    # The site that it starts checks its own settings, which have the sandbox's secrets.
    requires_system_checks = ()
    help = (
        "Start the sandbox, the example site and its worker, and say where to go"
        " and what to type."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--port", type=int, help="the site's port (8000)")
        parser.add_argument(
            "--sandbox-port",
            type=int,
            help="the sandbox's port (9400)",
        )
        parser.add_argument(
            "--empty",
            action="store_true",
            help="start without a history",
        )
        parser.add_argument(
            "--check",
            action="store_true",
            help="do the whole walk and exit",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        signal.signal(signal.SIGTERM, _interrupt)
        check: bool = options["check"]
        port = options["port"] or (free_port() if check else 8000)
        sandbox_port = options["sandbox_port"] or (free_port() if check else 9400)
        try:
            with failures_in_words():
                require_free(port, "--port")
                require_free(sandbox_port, "--sandbox-port")
                with ExitStack() as stack:
                    folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
                    history = () if options["empty"] else (HISTORY,)
                    wanted = () if check else (OPERATORS, *history)
                    database = folder / "demo.sqlite3"
                    demo = stack.enter_context(
                        started(port, sandbox_port, database, folder, wanted=wanted),
                    )
                    self._go(f"http://{HOST}:{port}", sandbox_port, demo, check=check)
        except KeyboardInterrupt:
            if check:
                raise CommandError("Stopped before the end of the walk.") from None
            self.stdout.write("Stopped.")

    def _go(self, site: str, sandbox_port: int, demo: Demo, *, check: bool) -> None:
        if check:
            self._check(site, sandbox_port, demo)
            return
        self.stdout.write(introduction(site, sandbox_port))
        by_hand_now = by_hand(sandbox_port, demo)
        self.stdout.write(
            f"\nAn event by hand, once Ada has signed in:\n  {by_hand_now}",
        )
        self.stdout.write(
            f"\nmanage.py works on this site's data with DATABASE_URL=sqlite:///{demo.database}\n"
            "A worker keeps the claims fresh. Ctrl-C stops all of it, and the data goes with it.",
        )
        signal.pause()

    def _check(self, site: str, sandbox_port: int, demo: Demo) -> None:
        newcomer, verified = demo.people
        walk = Walk(
            site,
            email=newcomer["email"],
            password=newcomer["password"],
            env=demo.env,
            say=self.stdout.write,
        )
        walk.run()
        ConnectWalk(site, pages_of(sandbox_port), say=self.stdout.write).run()
        event_walk = EventWalk(
            site,
            pages_of(sandbox_port),
            person=verified,
            client_id=demo.env["IDENTITY_CLIENT_ID"],
            database=demo.database,
            say=self.stdout.write,
        )
        event_walk.run()
        self.stdout.write(self.style.SUCCESS("All of it holds."))


@contextmanager
def failures_in_words() -> Iterator[None]:
    """What a person can mend, and a step that does not hold, end the command with their words."""
    try:
        yield
    except (DemoError, StepFailed, httpx.HTTPError) as error:
        raise CommandError(str(error)) from error


def _interrupt(*_received: object) -> None:
    raise KeyboardInterrupt


def pages_of(sandbox_port: int) -> str:
    """The sandbox's one address, on another host than the site, like a real service.

    People are sent to it from everywhere, so their session there is never left behind.
    """
    return f"http://localhost:{sandbox_port}"


@dataclass(frozen=True)
class Demo:
    """The running demo: two test users, the environment of the site's processes, the database."""

    people: list[dict[str, str]]
    env: dict[str, str]
    database: Path


@contextmanager
def started(
    port: int,
    sandbox_port: int,
    database: Path,
    folder: Path,
    *,
    wanted: Iterable[str] = (),
) -> Iterator[Demo]:
    """Run sandbox, site and worker. ``folder`` has files that are deleted at the end.

    ``wanted``: what the site has besides its members, ``OPERATORS`` and ``HISTORY``.
    """
    site = f"http://{HOST}:{port}"
    sandbox = pages_of(sandbox_port)
    with ExitStack() as stack:
        stack.enter_context(
            running(
                "-m",
                "django_identity.sandbox",
                "--port",
                str(sandbox_port),
                "--origin",
                sandbox,
                ready_at=f"{sandbox}/sandbox/health",
            ),
        )
        client = stack.enter_context(
            httpx.Client(base_url=f"{sandbox}/sandbox/", trust_env=False),
        )
        registered = _control(
            client,
            "applications",
            name="Ajo Circle",
            redirect_uris=[
                f"http://{host}:{port}/identity/callback/"
                for host in (HOST, "localhost")
            ],
        )
        hook = _control(
            client,
            f"applications/{registered['app_id']}/webhook",
            mode="test",
            url=f"{site}/identity/webhook/",
            secret=secrets.token_urlsafe(32),
        )
        people = [
            _control(client, "users", verified=verified) for verified in (False, True)
        ]
        env = {
            "DATABASE_URL": f"sqlite:///{database}",
            "DJANGO_SETTINGS_MODULE": os.environ["DJANGO_SETTINGS_MODULE"],
            "DEBUG": "1",
            "IDENTITY_BASE_URL": f"{sandbox}/api/v1",
            "IDENTITY_AUTH_URL": sandbox,
            "IDENTITY_SERVICE_NAME": SERVICE,
            "IDENTITY_SERVICE_ACCOUNT_URL": f"{sandbox}/account/",
            "IDENTITY_CLIENT_ID": registered["test"]["client_id"],
            "IDENTITY_CLIENT_SECRET": registered["test"]["client_secret"],
            "IDENTITY_WEBHOOK_SECRETS": hook["secret"],
            "BROKER_FOLDER": str(folder / "broker"),
            "UPKEEP_EVERY": "1",
            **trusted.approve(client, registered["app_id"]),
        }
        stack.enter_context(
            running(
                "-m",
                "example_project.demo.site",
                str(port),
                *wanted,
                ready_at=f"{site}/",
                env=env,
            ),
        )
        # The site has created the tables by now.
        beat = ("--beat", "--schedule", str(folder / "beat"))
        worker = (
            "-m",
            "celery",
            "-A",
            "example_project",
            "worker",
            "--pool",
            "solo",
            *beat,
        )
        stack.enter_context(running(*worker, ready_at=None, env=env))
        yield Demo(people, env, database)


def introduction(site: str, sandbox_port: int) -> str:
    """Whom the demo is for, and where each of them begins."""
    console = f"{pages_of(sandbox_port)}/"
    members = ", ".join(map(_shown, MEMBERS))
    return f"""
A person     {site}/
             Press “Continue with {SERVICE}”, then “Continue as Ada”.
             Or sign in with a password ({members}) and press “Use a code”.
A developer  {console}
             The sandbox's console: requests, events and deliveries as they happen, credentials,
             switches, and buttons that revoke, delete and fail.
An admin     {site}/admin/
             {_shown(OPERATOR)}: may look, and is no superuser
             {_shown(SUPERUSER)}: a superuser"""


def _shown(member: Member) -> str:
    return f"{member.name} / {member.password}"


def by_hand(sandbox_port: int, demo: Demo) -> str:
    """The command that sends the site a ``consent.revoked`` event about Ada by hand."""
    client_id = demo.env["IDENTITY_CLIENT_ID"]
    event = {"client_id": client_id, "event_type": "consent.revoked", "user_id": ADA}
    body = shlex.quote(json.dumps(event))
    return f"curl -X POST {pages_of(sandbox_port)}/sandbox/events --data {body}"


def _control(client: httpx.Client, path: str, **body: object) -> dict[str, Any]:
    answer: dict[str, Any] = client.post(path, json=body).raise_for_status().json()
    return answer
