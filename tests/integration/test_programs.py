"""Whole programs: the demo and its history, the circle, the README's quick start, and gettext's."""

import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from django_identity.instruments.signs import charts, of_rows
from django_identity.lifecycle.operators import timeline
from django_identity.models import LinkedIdentity
from example_project.demo.history import PEOPLE, make_history
from example_project.demo.members import OPERATOR
from example_project.demo.processes import HOST, free_port
from example_project.demo.site import make_operators
from tests.example_project.site import Site, running_site
from tests.fake_service import serving
from tests.sandbox.driver import TLS
from tests.sandbox.receiver import until
from tests.test_translations import CATALOGUES, LANGUAGES

ROOT = Path(__file__).resolve().parent.parent.parent
CHECK = [sys.executable, "manage.py", "demo", "--check"]


def surroundings() -> dict[str, Any]:
    env = {**os.environ, "DJANGO_SETTINGS_MODULE": "example_project.settings"}
    return {"cwd": ROOT, "env": env, "text": True}


def test_the_whole_walk_holds():
    """Over real sockets, with exit code 0. It says how soon the site obeyed each event."""
    how = {"capture_output": True, "timeout": 900, "check": False}
    walked = subprocess.run(CHECK, **surroundings(), **how)
    assert walked.returncode == 0, walked.stdout + walked.stderr
    assert walked.stdout.count("ok  ") >= 45
    assert len(re.findall(r"ok  .*, \d+ ms later\n", walked.stdout)) == 5
    for said in (
        "ok  pasted with words around it: whose code it is\n",
        "ok  verified there, a new code opens /loans/\n",
        "and left a receipt",
        "nothing in the site's database names the person",
        "ok  the worker re-fetched the claims when they were due\n",
    ):
        assert said in walked.stdout


def test_a_walk_that_is_stopped_did_not_hold():
    """Whoever runs it in CI asks for its exit code."""
    port = free_port()
    stopped = [*CHECK, "--sandbox-port", str(port)]
    with subprocess.Popen(stopped, **surroundings(), stdout=subprocess.PIPE) as walking:
        until(lambda: is_taken(port), seconds=120)
        walking.terminate()
        assert walking.stdout is not None
        said = walking.stdout.read()
    assert walking.returncode == 1
    assert "All of it holds" not in said
    assert not is_taken(port)


def is_taken(port: int) -> bool:
    with closing(socket.socket()) as probe:
        return probe.connect_ex((HOST, port)) == 0


README = (Path(__file__).parents[2] / "README.md").read_text("utf-8")
SETTINGS, URLS = re.findall(r"^```python\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
#: What a visitor of the gated page meets.
VISIT = """
from django.test import Client
from django.conf import settings
from django.shortcuts import resolve_url
client = Client(headers={"host": "localhost"})
page = client.get("/bar/", follow=True)
local = resolve_url(settings.IDENTITY_LOCAL_SIGN_IN_URL)
print(page.status_code, page.redirect_chain[0][0], "18 or older" in page.content.decode())
print(f'"{local}?next' in page.content.decode(), client.get(local).status_code)
"""


def test_the_quick_start_works_pasted(tmp_path):
    """With the two blocks the checks are silent, and no page leads to an error."""
    strange = {"DJANGO_SETTINGS_MODULE", "DATABASE_URL", "CELERY_BROKER_URL"}
    env = {name: value for name, value in os.environ.items() if name not in strange}

    def run(*command: str) -> str:
        return subprocess.run(
            [sys.executable, *command],
            cwd=tmp_path,
            env=env,
            check=True,
            capture_output=True,
            text=True,
        ).stdout

    run("-m", "django", "startproject", "shop", ".")
    for name, block in (("settings", SETTINGS), ("urls", URLS)):
        with (tmp_path / "shop" / f"{name}.py").open("a") as file:
            file.write(block)

    assert "no issues" in run("manage.py", "check")
    run("manage.py", "migrate", "-v", "0")
    seen = run("manage.py", "shell", "-v", "0", "-c", VISIT)
    gated, for_passwords = seen.splitlines()
    assert gated == "200 /identity/login/?next=%2Fbar%2F&missing=age_over_18 True"
    assert for_passwords == "True 200"


@pytest.mark.skipif(shutil.which("xgettext") is None, reason="needs gettext")
@pytest.mark.parametrize("locale", CATALOGUES, ids=["app", "example"])
def test_makemessages_changes_nothing(locale, tmp_path):
    """On the unchanged tree, so that after a change a translator sees that one alone."""
    unread = shutil.ignore_patterns("__pycache__", "sandbox", "static")
    copied = shutil.copytree(locale.parent, tmp_path / "copy", ignore=unread)
    command = ["-m", "django", "makemessages", "--all", "--no-location", "--no-wrap"]
    env = {**os.environ, "DJANGO_SETTINGS_MODULE": ""}
    subprocess.run(
        [sys.executable, *command],
        cwd=copied,
        env=env,
        check=True,
        capture_output=True,
    )

    for language in LANGUAGES:
        name = f"{language}/LC_MESSAGES/django.po"
        assert (copied / "locale" / name).read_text() == (locale / name).read_text()


JSON = {"Accept": "application/json"}
SECRET = "the key of this very site"
#: What each page says, by language.
SAID = {
    "en": {
        404: "There is no such page",
        403: "This page was open too long",
        500: "Something went wrong",
    },
    "ar": {
        404: "لا توجد هذه الصفحة",
        403: "بقيت هذه الصفحة مفتوحة وقتًا طويلًا",
        500: "حدث خطأ",
    },
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("circle")


@pytest.fixture(scope="module")
def site(folder: Path) -> Iterator[Site]:
    with serving() as service:
        settings = service.settings(LATER_SCOPES="documents:read")
        with running_site(folder, settings, DEBUG="", SECRET_KEY=SECRET) as running:
            yield running


@contextmanager
def window(site: Site, person: str = "") -> Iterator[httpx.Client]:
    cookies = {"sessionid": site.sessions[person]} if person else {}
    how = {"base_url": site.address, "trust_env": False, "verify": TLS}
    with httpx.Client(cookies=cookies, **how) as client:
        yield client


def is_ours(answer: httpx.Response, status: int, words: str, language: str) -> None:
    """One page of the circle's, in the language, which tells nothing about the site's inside."""
    direction = "rtl" if language == "ar" else "ltr"
    assert answer.status_code == status
    assert f'<html lang="{language}" dir="{direction}">' in answer.text
    assert f"<h1>{words}</h1>" in answer.text
    assert " Ajo Circle</title>" in answer.text
    assert answer.headers["Content-Security-Policy"] == "default-src 'self'"
    for inside in (
        SECRET,
        "Traceback",
        "sqlite",
        "django.",
        "DEBUG",
        "csrfmiddlewaretoken: ",
    ):
        assert inside not in answer.text


@pytest.mark.parametrize("language", SAID)
def test_error_pages_are_the_sites_own_in_each_language(site, language):
    """In the frame of the site, with the way back; and a form without its token, in words."""
    with window(site, "proven") as client:
        client.headers["Accept-Language"] = language
        unknown, refused = client.get("/nowhere/"), client.post("/adults/", data={})
    is_ours(unknown, 404, SAID[language][404], language)
    assert 'class="circle-brand"' in unknown.text
    assert 'class="identity-button" href="/"' in unknown.text
    is_ours(refused, 403, SAID[language][403], language)


@pytest.mark.parametrize("language", SAID)
def test_the_database_is_gone(site, folder, language):
    """The page of an error needs neither the database nor a session."""
    database = folder / "site.sqlite3"
    before = database.read_bytes()
    database.write_bytes(b"this is no database" * 1000)
    try:
        with window(site, "proven") as client:
            answer = client.get("/adults/", headers={"Accept-Language": language})
    finally:
        database.write_bytes(before)
    is_ours(answer, 500, SAID[language][500], language)


PAGES = ["linkedidentity/", "webhookevent/", "erasurereceipt/", "overview/"]


@pytest.mark.django_db
def test_the_history_is_one_of_two_hundred_people():
    """With revocations, failures, events of each outcome, and an erasure that waits.

    Operators look at it, and who is no superuser is offered no action.
    """
    with CaptureQueriesContext(connection) as queries:
        make_history()
    assert len(queries) < 60
    assert LinkedIdentity.objects.count() == PEOPLE == 200
    assert sum(1 for each in charts.days() if each.linked) > charts.DAYS / 2
    assert charts.people()[-1][2] > 5, "revoked"
    signs = {finding.check for finding in of_rows()}
    assert signs >= {"refetches", "erasures", "events"}
    for identity in LinkedIdentity.objects.all()[::9]:
        assert len(timeline.timeline_of(identity)) >= 2
    for _ in range(2):
        make_operators()
    operator = Client()
    assert operator.login(username=OPERATOR.name, password=OPERATOR.password)
    for page in PAGES:
        shown = operator.get(f"/admin/django_identity/{page}")
        assert 'name="action"' not in shown.content.decode()
