"""Ajo Circle, as its members meet it; and the history that the demo starts with."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

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
from example_project.demo.site import make_operators
from tests.example_project.site import Site, running_site
from tests.fake_service import serving
from tests.sandbox.driver import TLS

JSON = {"Accept": "application/json"}
SECRET = "the key of this very site"
#: What each page says, by language.
SAID = {
    "en": {404: "There is no such page", 403: "This page was open too long",
           500: "Something went wrong"},
    "ar": {404: "لا توجد هذه الصفحة", 403: "بقيت هذه الصفحة مفتوحة وقتًا طويلًا", 500: "حدث خطأ"},
}  # fmt: skip


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
        SECRET, "Traceback", "sqlite", "django.", "DEBUG", "csrfmiddlewaretoken: ",
    ):  # fmt: skip
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
