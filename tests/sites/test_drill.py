"""The drill finds each broken promise of a small shop, and names its cause or its place."""

import os
import re
import socket
import sqlite3
import subprocess
import sys
from contextlib import closing, suppress
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from example_project.demo.processes import ROOT
from tests.example_counts import spread
from tests.sandbox.receiver import until

#: The shops, each with the promises that it breaks -> what is found. None hides another.
SHOPS = (
    {
        "history": r"`shop.History.name` still has something of an erased person",
        "payload": r"`shop.EventLog.payload` still has something of an erased person",
        "name": r"`auth.User.first_name` still has something of an erased person",
        "file": r"the file `cards/2.txt` is still there when its person is erased",
        "template": r"`/wine/` is hidden by a template alone: its view has no gate",
        "subclass": r"`/export/` is open: Export.dispatch\(\) answers before the gate",
        "beside": r"`/back/` is open beside `/vault/`: the view tests.sites.drilled.urls.vault",
    },
    {
        "cached": r"`/bar/` stays in a cache for 600 s: .*UpdateCacheMiddleware",
        "deleted": r"`shop.Order.name` still has something of an erased person",
        "recreated": r"an account is made again after an erasure, by a receiver of a signal",
        "session": r"somebody is signed in, step “ended”: tests.sites.drilled.sessions",
    },
    {
        "user": r"somebody is signed in, step “ended”: `request.user` .*middleware.replaced_user",
        "unique": r"an erasure waits: .*policy.py, line \d+: UNIQUE .*: shop_letter.email",
    },
    # There nobody gets further.
    {
        "login": r"a person cannot go on: the login page does not lead to the service",
    },
    {
        "webhook": r"a person cannot go on: the webhook answered 403",
    },
    {
        "signal": r"a person cannot go on: the sign-in fails, .*apps.py, line \d+: division by",
    },
)
REFUSED = {
    "database": "CommandError: The back end of a database makes no test database",
    "credentials": "CommandError: The site keeps its own credentials",
    "unfilled": "E041) A sign-up does not fill these fields of custom_user.User validly: country",
    "port": "CommandError: The sandbox finds no free port here: Address already in use",
    "extra": 'CommandError: The drill needs the sandbox: pip install "django-identity[sandbox]"',
}
#: What is wrong with the machine, as code that each of its processes runs first.
MACHINES = {
    "extra": "import sys; sys.modules['oauth2_provider'] = None",
    "port": """
import errno, os, socket

def bind(*_):
    raise OSError(errno.EADDRINUSE, os.strerror(errno.EADDRINUSE))

socket.socket.bind = bind
""",
}
NOT_TRIED = {
    "gateless": ["gates: no address has one that can be tried"],
    "scopeless": [
        "/wine/: nobody here has age_over_18",
        "/vault/: nobody here has level_2",
    ],
}
# Of the walk: cookies, a path, requests in a transaction, logins everywhere.
KINDS = (
    "beside_allauth",
    "custom_user",
    "frontend",
    "strict",
    "subpath",
)


def drilled(
    breaks: str, *arguments: str, site: str = "drilled", **env: str
) -> subprocess.CompletedProcess[str]:
    """The drill of the shop that breaks these promises, or of another site."""
    env = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": f"tests.sites.{site}.settings",
        "SITE_BREAKS": breaks,
        **env,
    }
    command = [sys.executable, "-m", "django", "identity_drill", *arguments]
    return subprocess.run(
        command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=300
    )


def found_in(said: subprocess.CompletedProcess[str], word: str = "found") -> list[str]:
    return re.findall(rf"^{word}: (.*)$", said.stdout, re.MULTILINE)


def test_a_shop_that_keeps_its_promises_is_clean() -> None:
    said = drilled("", "--fail-on-untried")
    assert said.returncode == 0, said.stdout + said.stderr


@pytest.mark.parametrize("shop", SHOPS, ids=",".join)
def test_each_broken_promise_is_found(shop: dict[str, str]) -> None:
    """Exit 1, with a sentence for each."""
    said = drilled(",".join(shop))
    found = found_in(said)
    assert said.returncode == 1, said.stdout + said.stderr
    for expected in shop.values():
        assert any(re.match(expected, sentence) for sentence in found), found


@pytest.mark.parametrize("kind", spread(KINDS, every=2))
def test_a_site_of_another_kind_is_clean(kind: str) -> None:
    """Where people have e-mail addresses for names, one without is refused, and that is said."""
    said = drilled("", site=kind)
    refused = [
        "a person without an e-mail address: the sign-in fails, user_fields_refused"
    ]
    assert said.returncode == 0, said.stdout + said.stderr
    assert found_in(said, "not tried") == (refused if kind == "custom_user" else [])


@pytest.mark.parametrize("breaks", REFUSED)
def test_where_it_cannot_run_it_says_why(breaks: str, tmp_path: Path) -> None:
    """And leaves the site's own database as it is."""
    database = tmp_path / "site.sqlite3"
    database.write_bytes(b"of the site")
    (tmp_path / "sitecustomize.py").write_text(MACHINES.get(breaks, ""))
    path = f"{tmp_path}:{ROOT}"
    said = drilled(breaks, SITE_FOLDER=str(tmp_path), PYTHONPATH=path)
    assert said.returncode == 1
    assert REFUSED[breaks] in said.stderr
    assert "Traceback" not in said.stderr
    assert database.read_bytes() == b"of the site"


def test_nothing_live_is_touched(tmp_path: Path) -> None:
    """Nor what the shop has opened when it was imported: cache, storage, mail, broker."""
    databases = [tmp_path / "site.sqlite3", tmp_path / "books.sqlite3"]
    for database in databases:
        database.write_bytes(b"of the site")
    live = tmp_path / "live"
    live.mkdir()
    with socket.create_server(("127.0.0.1", 0)) as broker:
        url = f"redis://127.0.0.1:{broker.getsockname()[1]}/0"
        said = drilled("live", SITE_FOLDER=str(tmp_path), SITE_BROKER=url)
        broker.setblocking(False)
        with pytest.raises(BlockingIOError):
            broker.accept()
    assert list(live.iterdir()) == []
    for database in databases:
        assert database.read_bytes() == b"of the site"
    # All of it ran: these files are in the folder of the drill.
    found = found_in(said)
    assert len(found) == 3, said.stdout + said.stderr
    assert all(sentence.startswith("the file `newest") for sentence in found)


@pytest.mark.parametrize("breaks", ["pooled", "kept"])
def test_connections_to_the_database_of_the_site_are_not_used(
    breaks: str, tmp_path: Path
) -> None:
    """Those of Django's pools end before it begins. With others it does not run."""
    env = {**os.environ, "DJANGO_SETTINGS_MODULE": "tests.sites.drilled.settings"}
    env["SITE_FOLDER"] = str(tmp_path)
    command = [sys.executable, "-m", "django", "migrate", "--verbosity", "0"]
    subprocess.run(command, cwd=ROOT, env=env, check=True)
    said = drilled(breaks, SITE_FOLDER=str(tmp_path))
    if breaks == "kept":
        assert REFUSED["database"] in said.stderr
    else:
        assert said.returncode == 0, said.stdout + said.stderr
    with closing(sqlite3.connect(tmp_path / "site.sqlite3")) as site:
        assert site.execute("SELECT COUNT(*) FROM auth_user").fetchone() == (0,)


@pytest.mark.parametrize("breaks", ["early", "raising,late"])
def test_no_broker_is_asked_that_apps_do_not_know(breaks: str) -> None:
    """Where the URLconf imports the Celery app, or the first task.

    It is clean, with a receiver that raises an error, too.
    """
    asked: list[Any] = []

    def accept(broker: socket.socket) -> None:
        with suppress(OSError):
            while True:
                held, address = broker.accept()
                asked.append(address)
                held.close()

    with socket.create_server(("127.0.0.1", 0)) as broker:
        Thread(target=accept, args=[broker], daemon=True).start()
        port = broker.getsockname()[1]
        said = drilled(
            breaks, "--fail-on-untried", SITE_BROKER=f"redis://127.0.0.1:{port}/0"
        )
        broker.shutdown(socket.SHUT_RDWR)
    assert said.returncode == 0, said.stdout + said.stderr
    assert asked == []


@pytest.mark.parametrize("breaks", NOT_TRIED)
def test_what_was_not_tried_is_said(breaks: str) -> None:
    """A site without gates, and one that asks nobody for what its gates ask."""
    given = ("--address", "/nowhere/", "--exclude", "/bar/")
    said = drilled(breaks, *given, "--fail-on-untried")
    assert said.returncode == 1
    assert found_in(said) == []
    untried = [
        "/bar/: excluded",
        "/nowhere/: no gated address has it",
        *NOT_TRIED[breaks],
    ]
    assert found_in(said, "not tried") == untried
    assert "what a template hides by a tag or a filter" in found_in(said, "not seen")
    assert said.stderr.splitlines()[-1] == (
        f"CommandError: 0 found, {len(untried)} not tried."
    )


def test_what_it_started_ends_with_it(tmp_path: Path) -> None:
    """A deployment's stop, when the sandbox runs: exit 130, and nothing stays."""
    env = {**os.environ, "DJANGO_SETTINGS_MODULE": "tests.sites.drilled.settings"}
    command = [sys.executable, "-m", "django", "identity_drill"]
    env["TMPDIR"] = str(tmp_path)
    with subprocess.Popen(
        command, cwd=ROOT, env=env, stderr=subprocess.PIPE, text=True
    ) as drill:
        until(
            lambda: (
                children_of(drill.pid) != []
                and any(tmp_path.glob("identity-sandbox-*/*"))
            )
        )
        [sandbox] = children_of(drill.pid)
        drill.terminate()
        _, error = drill.communicate(timeout=60)
    assert drill.returncode == 130
    assert "CommandError: Stopped." in error.splitlines()
    assert not Path(f"/proc/{sandbox}").exists()
    assert list(tmp_path.iterdir()) == []


def children_of(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
