"""The drill finds each broken promise of a small shop, and names its cause or its place."""

import json
import os
import re
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from example_project.demo.processes import ROOT
from tests.example_counts import spread
from tests.sandbox.receiver import until

KEEPS = "has something of an erased person"
GOES_NOT_ON = "found: a person cannot go on: "
#: The shops, each with what the operator tells and the promises that it breaks -> what is said of
#: each: "found", or "not seen" with the number. None hides another.
SHOPS = (
    (
        ("/own-session/=age_over_18",),
        {
            # The claim is remembered
            "own_session": r"found: `/own-session/` is open$",
            "path": r"found: `/path/` is open: stored_by_path\(\) answers before the gate",
            "shared": r"found: `/shared/` may stay in a cache: .*max-age=600",
            "not_modified": r"found: `/old/` answers 304 before the gate",
            # The gate is passed by
            "beside": r"found: `/back/` is open beside `/old/`: tests.*pages.vault",
            "lambda": r"found: `/side/` shows to everybody what `/old/` has behind its gate",
            "half": r"found: `/half/` is open to POST beside a method with a gate",
            "list": r"not seen: whether it needs a gate \(5\): .*/list/",
            "post": r"not seen: whether it needs a gate \(5\): .*/buy/",
            "stream": r"not seen: what a stream sends after the gate \(1\): /stream/",
        },
    ),
    (
        # If the operator says what is to be asked there
        ("/list/=age_over_18", "/buy/=age_over_18"),
        {
            "list": r"found: `/list/` is open$",
            "post": r"found: `/buy/` is open$",
            # A copy of the name stays
            "row": rf"found: `shop.Order.name` still {KEEPS}",
            "raw": rf"found: `default.shop_raw` still {KEEPS}",
            "cache": rf"found: `CACHES.default` still {KEEPS}",
            "file": rf"found: `MEDIA/cards/2.txt` still {KEEPS}",
            # Errors that a log has, and the drill's is silent
            "handler": r"found: identity.event.handler_failed: ZeroDivisionError in .*apps.py",
            "raising": r"found: django.dispatch: ZeroDivisionError in .*apps.py, line \d+: not",
        },
    ),
    (
        (),
        {
            "recreated": r"found: an account is made again after an erasure",
            "claim_value": r"found: `/lisbon/` is open to somebody from XX",
            "rendered": r"found: `/identity/account/` fails: TemplateDoesNotExist .*nowhere.html",
            "session": r"found: somebody is signed in, step “ended”: .*drilled.broken",
        },
    ),
    (
        (),
        {
            "user": r"found: somebody is signed in, step “ended”: `request.user` is not the sess",
        },
    ),
    # There nobody gets further.
    ((), {"login": GOES_NOT_ON + "the login page does not lead to the service"}),
    ((), {"webhook": GOES_NOT_ON + "the webhook answered 403"}),
    ((), {"signal": GOES_NOT_ON + r"the sign-in fails, .*apps.py, line \d+: not"}),
)
#: Shops that are right, with the addresses that the operator tells.
RIGHT = {
    "": (),
    "adults": (),
    "countries": (),
    "languages": (),
    "replica": (),
}
REFUSED = {
    "forbidden": "CommandError: No test database can be made. May its user?",
    "database": "CommandError: The back end of a database makes no test database",
    "credentials": "CommandError: The site keeps its own credentials",
    "unfilled": "E041) A sign-up does not fill these fields of custom_user.User validly: country",
}
NOT_TRIED = {
    "gateless": [],
    "scopeless": [
        "/wine/: nobody here has age_over_18",
        "/vault/: nobody here has level_2",
    ],
}
# Of the walk: cookies, a path, requests in a transaction, logins everywhere.
KINDS = (
    "beside_allauth",
    "custom_user",
    "strict",
    "subpath",
)


SHOP = {**os.environ, "DJANGO_SETTINGS_MODULE": "tests.sites.drilled.settings"}


def drilled(
    breaks: str,
    *arguments: str,
    **env: str,
) -> subprocess.CompletedProcess[str]:
    """The drill of the shop that breaks these promises, or of another site."""
    env = {**SHOP, "SITE_BREAKS": breaks, **env}
    command = [sys.executable, "-m", "django", "identity_drill", *arguments]
    return subprocess.run(
        command,
        cwd=ROOT,
        env=env,
        capture_output=True,
        text=True,
        timeout=300,
    )


def addresses(told: Iterable[str]) -> list[str]:
    return [argument for path in told for argument in ("--address", path)]


def found_in(said: subprocess.CompletedProcess[str], word: str = "found") -> list[str]:
    return re.findall(rf"^{word}: (.*)$", said.stdout, re.MULTILINE)


@pytest.mark.parametrize("shop", RIGHT)
def test_a_shop_that_keeps_its_promises_is_clean(shop):
    """And tried: each of its gates was open to somebody. A policy may refuse who proves nothing."""
    said = drilled(shop, *addresses(RIGHT[shop]), "--fail-on-untried")
    assert said.returncode == 0, said.stdout + said.stderr
    refused = "the policy refuses (`sign_up_refused`) (1): step unproven"
    assert (refused in found_in(said, "not seen")) is (shop == "adults")
    table = said.stdout.splitlines()[1:]
    table = table[: table.index("-: nobody can tell; the line below says why.")]
    assert not [line for line in table if line.startswith("-")]
    assert max(map(len, table)) <= 80


@pytest.mark.parametrize(
    ("told", "shop"),
    SHOPS,
    ids=[",".join(each) for _, each in SHOPS],
)
def test_each_broken_promise_is_found(told, shop, tmp_path):
    """Exit 1, with a sentence for each; or it is said that nobody looks there."""
    said = drilled(",".join(shop), *addresses(told), SITE_FOLDER=str(tmp_path))
    assert said.returncode == 1, said.stdout + said.stderr
    lines = said.stdout.splitlines()
    missing = [
        name
        for name, expected in shop.items()
        if not any(re.match(expected, line) for line in lines)
    ]
    assert missing == [], said.stdout + said.stderr


@pytest.mark.parametrize("kind", spread(KINDS, every=2))
def test_a_site_of_another_kind_is_clean(kind):
    """Where people have e-mail addresses for names, one without is refused, and that is said."""
    said = drilled("", SITE=kind, DJANGO_SETTINGS_MODULE="tests.sites.settings")
    refused = [
        "a person without an e-mail address: the sign-in fails, user_fields_refused",
    ]
    assert said.returncode == 0, said.stdout + said.stderr
    assert found_in(said, "not tried") == (refused if kind == "custom_user" else [])


@pytest.mark.parametrize("breaks", REFUSED)
def test_where_it_cannot_run_it_says_why(breaks, tmp_path):
    """And leaves the site's own database as it is."""
    database = tmp_path / "site.sqlite3"
    database.write_bytes(b"of the site")
    said = drilled(breaks, SITE_FOLDER=str(tmp_path))
    assert said.returncode == 1
    assert REFUSED[breaks] in said.stderr
    assert "Traceback" not in said.stderr
    assert database.read_bytes() == b"of the site"


def test_a_namesake_is_not_erased():
    """A hit in another account's own name is unsure, and nothing is found.

    A drill of another site at the same time has databases, a sandbox and people of its own.
    """
    with ThreadPoolExecutor() as both:
        said, other = both.map(drilled, ["namesake", "beside"])
    assert said.returncode == 0, said.stdout + said.stderr
    assert found_in(other)[0].startswith("`/back/` is open beside")
    words = "auth.User.first_name: it has a word of the person that others have, too"
    assert words in found_in(said, "unsure")


def test_what_was_seen_is_told_whatever_fails():
    """A test database that cannot be deleted is named, and so is what was done."""
    said = drilled("lingering,beside")
    assert said.returncode == 1
    [beside, *_, lingering] = found_in(said)
    assert beside.startswith("`/back/` is open beside")
    assert re.match(
        r'the drill cannot go on: OperationalError in .*: database "file:drill_',
        lingering,
    )
    assert "Traceback" not in said.stderr


def test_nothing_live_is_touched(tmp_path):
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
    # All of it ran: this is in the folder and the memory of the drill.
    found = {sentence.split("`")[1][:12] for sentence in found_in(said)}

    assert found == {"CACHES.drill", "MEDIA/newest"}, said.stdout + said.stderr


@pytest.mark.parametrize("breaks", ["pooled", "kept"])
def test_connections_to_the_database_of_the_site_are_not_used(breaks, tmp_path):
    """Those of Django's pools end before it begins. With others it does not run."""
    env = SHOP | {"SITE_FOLDER": str(tmp_path)}
    command = [sys.executable, "-m", "django", "migrate", "--verbosity", "0"]
    subprocess.run(command, cwd=ROOT, env=env, check=True)
    said = drilled(breaks, SITE_FOLDER=str(tmp_path))
    if breaks == "kept":
        assert REFUSED["database"] in said.stderr
    else:
        assert said.returncode == 0, said.stdout + said.stderr
    with closing(sqlite3.connect(tmp_path / "site.sqlite3")) as site:
        assert site.execute("SELECT COUNT(*) FROM auth_user").fetchone() == (0,)


@pytest.mark.parametrize("breaks", ["early", "late"])
def test_no_broker_is_asked_that_apps_do_not_know(breaks):
    """Where the URLconf imports the Celery app, or the first task."""
    with socket.create_server(("127.0.0.1", 0)) as broker:
        url = f"redis://127.0.0.1:{broker.getsockname()[1]}/0"
        said = drilled(breaks, "--fail-on-untried", SITE_BROKER=url)
        assert said.returncode == 0, said.stdout + said.stderr
        broker.setblocking(False)
        with pytest.raises(BlockingIOError):
            broker.accept()


@pytest.mark.parametrize("breaks", NOT_TRIED)
def test_what_was_not_tried_is_said(breaks):
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
        f"CommandError: No gate was tried. 0 found, {len(untried)} not tried."
    )


@pytest.mark.parametrize("begun", ["tables", "sandbox"])
def test_what_it_started_ends_with_it(begun, tmp_path):
    """A deployment's stop, when the database or the sandbox is there: exit 130, nothing stays."""
    folders = {"SITE_FOLDER": str(tmp_path), "TMPDIR": str(tmp_path)}
    env = {**SHOP, "SITE_BREAKS": "noted", **folders}
    signs = {"tables": "*.made", "sandbox": "identity-sandbox-*/*"}
    command = [sys.executable, "-m", "django", "identity_drill"]
    with subprocess.Popen(
        command,
        cwd=ROOT,
        env=env,
        stderr=subprocess.PIPE,
        text=True,
    ) as drill:
        until(lambda: any(tmp_path.glob(signs[begun])))
        assert any(tmp_path.glob(signs["tables"]))
        started = children_of(drill.pid)
        drill.terminate()
        _, error = drill.communicate(timeout=60)

    assert drill.returncode == 130
    assert "CommandError: Stopped." in error.splitlines()
    assert not any(Path(f"/proc/{child}").exists() for child in started)
    assert list(tmp_path.iterdir()) == []


def children_of(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


STEPS = {
    "nobody",
    "local",
    "unproven",
    "proven",
    "revoked",
    "ended",
    "run out",
    "disconnected",
    "erased",
}
GATED = {"/adults/", "/residents/", "/loans/", "/leave/", "/api/circles/"}


def test_the_example_project_is_clean(tmp_path):
    """Every address at every step, with neither database, broker nor cache of the site."""
    evidence, database = tmp_path / "drill.json", tmp_path / "site.sqlite3"
    said = drilled(
        *("", "--json", str(evidence), "--label", "v1", "--fail-on-untried"),
        DJANGO_SETTINGS_MODULE="example_project.settings",
        DATABASE_URL=f"sqlite:///{database}",
        CELERY_BROKER_URL="redis://127.0.0.1:9/0",
        CACHE_URL="redis://127.0.0.1:9/1",
    )
    assert said.returncode == 0, said.stdout + said.stderr
    assert said.stdout.splitlines()[-1] == "0 found, 0 not tried."
    assert not database.exists()

    seen = json.loads(evidence.read_text("utf-8"))
    assert seen["label"] == "v1"
    visits = seen["visits"]
    seen_at = {(visit["address"], visit["step"]) for visit in visits}
    assert seen_at == {(address, step) for address in GATED for step in STEPS}
    assert {visit["outcome"] for visit in visits} == {"ok"}
    assert {each["address"] for each in visits if each["status"] == 200} == GATED
