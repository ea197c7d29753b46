"""The walk with events fails where the site does not obey: what it says has been proven."""

from __future__ import annotations

import shlex
import sqlite3
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest
from django.core.management import CommandError

from example_project.circle.management.commands.demo import (
    Demo,
    by_hand,
    failures_in_words,
    pages_of,
    started,
)
from example_project.demo.event_walk import AT_ONCE, ERASED_WITHIN, EventWalk
from example_project.demo.processes import HOST, free_port
from example_project.demo.walk import StepFailed, Walk
from tests.sandbox.driver import TLS

pytestmark = pytest.mark.processes

CLAIM = "a verified person signed in, and /adults/ is open"
CONSENT = "and nothing else: /loans/ is open still"
LATE = AT_ONCE + 0.3
INVALIDATION = "a verified person signed in, and /loans/ is open"
DELETION = "and /adults/ is closed, too"


@dataclass(frozen=True)
class Stage:
    """A demo that runs, and the control of its sandbox."""

    demo: Demo
    site: str
    sandbox_port: int
    control: httpx.Client

    @property
    def client_id(self) -> str:
        return self.demo.env["IDENTITY_CLIENT_ID"]

    def tell(self, path: str, **body: object) -> Any:
        return self.control.post(path, json=body).raise_for_status().json()

    def delay_what_happens_next(self) -> threading.Thread:
        """The next event comes too late after its cause, and then the thread is over."""
        self.tell("deliveries/hold", client_id=self.client_id)
        releasing = threading.Thread(target=self._release_late, daemon=True)
        releasing.start()
        return releasing

    def _release_late(self) -> None:
        while not any(each["state"] == "held" for each in self.control.get("deliveries").json()):
            time.sleep(0.02)
        time.sleep(LATE)
        self.tell("deliveries/release", client_id=self.client_id)

    def in_database(self, statement: str, *values: str) -> list[Any]:
        """What a statement in the site's database answers."""
        with closing(sqlite3.connect(self.demo.database, timeout=20)) as database, database:
            return database.execute(statement, values).fetchall()

    def walk(self, hear: Callable[[str], None], *, erased_within: float = ERASED_WITHIN) -> None:
        """A verified person's walk; ``hear`` is told each step that held."""
        walk = EventWalk(
            self.site,
            pages_of(self.sandbox_port),
            person=self.tell("users", verified=True),
            client_id=self.client_id,
            database=self.demo.database,
            say=hear,
            erased_within=erased_within,
        )
        walk.run()


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    folder, port, sandbox_port = tmp_path_factory.mktemp("demo"), free_port(), free_port()
    address = f"http://{HOST}:{sandbox_port}/sandbox/"
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("DJANGO_SETTINGS_MODULE", "example_project.settings")
        opened = started(port, sandbox_port, Path(folder) / "demo.sqlite3", folder)
        with opened as demo, httpx.Client(base_url=address, trust_env=False, verify=TLS) as control:
            yield Stage(demo, f"http://{HOST}:{port}", sandbox_port, control)


@pytest.mark.parametrize(
    ("after", "step"),
    [
        (CLAIM, "revoked a claim at the service"),
        (CONSENT, "revoked the consent at the service"),
        (INVALIDATION, "the verification was taken back at the service"),
        (DELETION, "asked the service for deletion"),
    ],
)
def test_an_effect_that_is_late_fails(stage: Stage, after: str, step: str) -> None:
    """More than a second after the cause is too late, of whichever event."""
    heard: list[str] = []
    releasing: list[threading.Thread] = []

    def hear(line: str) -> None:
        heard.append(line)
        if line == f"ok  {after}":
            releasing.append(stage.delay_what_happens_next())

    with pytest.raises(StepFailed, match=f"not so: {step}"):
        stage.walk(hear)
    assert heard[-1] == f"ok  {after}"
    releasing[0].join()


def test_a_step_that_does_not_hold_ends_the_walk(stage: Stage) -> None:
    """Somebody who is not 18 gets no further: the command fails with the name of the step."""
    young = stage.tell("users", date_of_birth=str(datetime.now(UTC).date()))
    heard: list[str] = []
    walk = Walk(
        stage.site,
        email=young["email"],
        password=young["password"],
        env=stage.demo.env,
        say=heard.append,
    )
    with (
        pytest.raises(CommandError, match="not so: consent brought the person back"),
        failures_in_words(),
    ):
        walk.run()
    assert heard[-1] == "ok  the consent screen says what is asked for"


def test_the_command_that_is_printed_reaches_the_site(stage: Stage) -> None:
    """The demo says how to send an event by hand, with the secret that it made up."""
    command = shlex.split(by_hand(stage.site, stage.demo))
    sent = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
    assert sent.returncode == 0, sent.stderr
    assert "200 acknowledged" in sent.stdout


def test_an_erasure_that_is_not_done_fails(stage: Stage) -> None:
    """Closed gates are not enough: the receipt must say that everything is gone."""

    def hear(line: str) -> None:
        if line == f"ok  {DELETION}":
            stage.in_database(
                "CREATE TRIGGER undone BEFORE UPDATE OF erased_at ON django_identity_erasurereceipt"
                " BEGIN SELECT RAISE(ABORT, 'not yet'); END"
            )

    with pytest.raises(StepFailed, match="not so: the worker erased what was held"):
        stage.walk(hear, erased_within=1)
    stage.in_database("DROP TRIGGER undone")


def test_a_name_that_stays_fails(stage: Stage) -> None:
    """After the deletion nothing in the database may name the person, wherever it stands."""
    addresses: list[str] = []
    signed_up = "SELECT email FROM auth_user WHERE email LIKE 'person-%' ORDER BY id DESC"
    kept = "UPDATE auth_user SET last_name = ? WHERE username = 'kemi'"

    def hear(line: str) -> None:
        if line == f"ok  {DELETION}":
            addresses.append(stage.in_database(signed_up)[0][0])
        if "left a receipt" in line:
            stage.in_database(kept, *addresses)

    with pytest.raises(StepFailed, match="not so: nothing in the site's database names the person"):
        stage.walk(hear)
    assert addresses
