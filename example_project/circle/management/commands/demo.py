"""``manage.py demo``: the sandbox and the site, started and explained; ``--check`` walks it."""

from __future__ import annotations

import os
import signal
import tempfile
from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx
from django.core.management.base import BaseCommand, CommandError

from example_project.demo.processes import (
    HOST,
    ROOT,
    DemoError,
    free_port,
    require_free,
    running,
)
from example_project.demo.walk import BVN, StepFailed, Walk


class Command(BaseCommand):
    help = "Start the sandbox and the example site, and say where to go and what to type."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--port", type=int, help="the site's port (8000)")
        parser.add_argument("--sandbox-port", type=int, help="the sandbox's port (9400)")
        parser.add_argument("--check", action="store_true", help="do the whole walk and exit")

    def handle(self, *args: Any, **options: Any) -> None:
        signal.signal(signal.SIGTERM, _interrupt)
        check: bool = options["check"]
        port = options["port"] or (free_port() if check else 8000)
        sandbox_port = options["sandbox_port"] or (free_port() if check else 9400)
        try:
            require_free(port, "--port")
            require_free(sandbox_port, "--sandbox-port")
            with ExitStack() as stack:
                folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
                database = folder / "demo.sqlite3" if check else ROOT / "demo.sqlite3"
                people = stack.enter_context(started(port, sandbox_port, database))
                self._go(f"http://{HOST}:{port}", sandbox_port, people, check=check)
        except KeyboardInterrupt:
            self.stdout.write("Stopped.")
        except (DemoError, StepFailed, httpx.HTTPError) as error:
            raise CommandError(str(error)) from error

    def _go(
        self, site: str, sandbox_port: int, people: list[dict[str, str]], *, check: bool
    ) -> None:
        if check:
            newcomer = people[0]
            walk = Walk(
                site, email=newcomer["email"], password=newcomer["password"], say=self.stdout.write
            )
            walk.run()
            self.stdout.write(self.style.SUCCESS("All of it holds."))
            return
        verified = ("not verified yet", "verified already")
        self.stdout.write(f"\nOpen {site}/ and press “Sign in with identity”.\n")
        for person, state in zip(people, verified, strict=True):
            self.stdout.write(f"  {person['email']}  password {person['password']}  ({state})")
        self.stdout.write(f"  test BVN {BVN}")
        self.stdout.write(f"\nThe sandbox's own pages: http://{HOST}:{sandbox_port}/account/")
        self.stdout.write("Ctrl-C stops both.")
        signal.pause()


def _interrupt(*_received: object) -> None:
    raise KeyboardInterrupt


@contextmanager
def started(port: int, sandbox_port: int, database: Path) -> Iterator[list[dict[str, str]]]:
    """Sandbox and site, running; gives the two test users."""
    site, sandbox = f"http://{HOST}:{port}", f"http://{HOST}:{sandbox_port}"
    with ExitStack() as stack:
        stack.enter_context(
            running(
                "-m", "django_identity.sandbox", "--port", str(sandbox_port),
                ready_at=f"{sandbox}/sandbox/health",
            )
        )  # fmt: skip
        client = stack.enter_context(httpx.Client(base_url=f"{sandbox}/sandbox/", trust_env=False))
        registered = _control(
            client, "applications", name="Ajo Circle", redirect_uris=[f"{site}/identity/callback/"]
        )
        people = [_control(client, "users", verified=verified) for verified in (False, True)]
        env = {
            "DATABASE_URL": f"sqlite:///{database}",
            "DJANGO_SETTINGS_MODULE": os.environ["DJANGO_SETTINGS_MODULE"],
            "DEBUG": "1",
            "IDENTITY_BASE_URL": f"{sandbox}/api/v1",
            "IDENTITY_AUTH_URL": sandbox,
            "IDENTITY_CLIENT_ID": registered["test"]["client_id"],
            "IDENTITY_CLIENT_SECRET": registered["test"]["client_secret"],
        }
        stack.enter_context(
            running("-m", "example_project.demo.site", str(port), ready_at=f"{site}/", env=env)
        )
        yield people


def _control(client: httpx.Client, path: str, **body: object) -> dict[str, Any]:
    answer: dict[str, Any] = client.post(path, json=body).raise_for_status().json()
    return answer
