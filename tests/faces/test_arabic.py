"""On an Arabic page nothing of ours stays in English: what is left in Latin letters has a name."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest
from django.test import Client, override_settings
from django.urls import reverse

from django_identity.models import ErasureReceipt, LinkedIdentity, WebhookEvent
from django_identity.texts import labels
from tests.example_project.operators import settle_operators
from tests.example_project.people import settle
from tests.faces.admin import EVENTS, IDENTITIES, OVERVIEW, RECEIPTS
from tests.faces.djangos_english import without_djangos
from tests.hostile import HostileService

pytestmark = pytest.mark.django_db

SAID_AS_IT_IS = {"code", "pre", "script", "style", "time", "bdi"}
NAMES = {"Connect", "Identity", "KYC", "Ltd", "Verify"}
CODES = {"CNX-XXXX-XXXX", "GH", "NG", "UTC", "operator", "testserver"}
# Django's own page has it in English, past any catalogue.
DJANGOS = {"Search"}
EMPTY = {"br", "circle", "hr", "img", "input", "line", "link", "meta", "path", "rect"}
SPOKEN = {"alt", "aria-label", "placeholder", "title"}
WORD = re.compile(r"[A-Za-z][A-Za-z]+(?:[._-][A-Za-z]+)*")
# An address, a path, or whatever has a digit in it.
NO_WORD = re.compile(r"\S+@\S+|/\S*|\S*[0-9]\S*")
CODE = re.compile(r"[a-z]+[._-][a-z._-]+|[A-Z]+_[A-Z_]+|default|test")


class Words(HTMLParser):
    """The words in Latin letters that a page says: its text, and the names of what has none."""

    def __init__(self) -> None:
        super().__init__()
        self.found: set[str] = set()
        self._within: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in EMPTY:
            self._within.append(tag)
        for name, value in attrs:
            if name in SPOKEN and value:
                self._hear(value)

    def handle_endtag(self, tag: str) -> None:
        while self._within and self._within.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        if not SAID_AS_IT_IS.intersection(self._within):
            self._hear(data)

    def _hear(self, text: str) -> None:
        self.found.update(WORD.findall(NO_WORD.sub(" ", without_djangos(text))))


def english_of(page: str, people: set[str]) -> set[str]:
    heard = Words()
    heard.feed(page)
    assert 'dir="rtl"' in page
    unnamed = heard.found - NAMES - CODES - DJANGOS - people
    return {word for word in unnamed if not CODE.fullmatch(word)}


@pytest.fixture
def sessions(service: HostileService) -> dict[str, str]:
    return settle() | settle_operators()


def arabic(session: str) -> Client:
    browser = Client()
    browser.cookies["sessionid"] = session
    return browser


def people() -> set[str]:
    users = LinkedIdentity.objects.values_list("user__username", "user__first_name")
    return {name for pair in users for name in pair} | {"Django", "Efe", "Nia"}


def test_the_admin(sessions: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Lists, pages, questions, what came of them, and the overview."""
    # Gates of other tests ask for levels with English names.
    monkeypatch.setattr(labels, "_levels", dict.fromkeys(("level_1", "level_2")))
    operator = arabic(sessions["operator"])
    identities = list(LinkedIdentity.objects.values_list("pk", flat=True))
    with override_settings(LANGUAGE_CODE="ar"):
        names = ("admin:index", IDENTITIES, EVENTS, RECEIPTS, OVERVIEW)
        addresses = [reverse(name) for name in names]
        for model in (LinkedIdentity, WebhookEvent, ErasureReceipt):
            name = f"admin:django_identity_{model._meta.model_name}_change"
            addresses += [reverse(name, args=[row.pk]) for row in model.objects.all()]
        pages = {address: operator.get(address) for address in addresses}
        for action in ("refetch", "check_credential", "revoke", "erase"):
            chosen = {"action": action, "_selected_action": identities[0]}
            pages[action] = operator.post(reverse(IDENTITIES), chosen)
        for action in ("refetch", "check_credential", "revoke"):
            for pk in identities:
                chosen = {"action": action, "_selected_action": pk, "confirmed": "yes"}
                pages[f"{action} {pk}"] = operator.post(reverse(IDENTITIES), chosen, follow=True)
        for confirmed in ({}, {"confirmed": "yes"}):
            first = WebhookEvent.objects.first()
            chosen = {"action": "replay", "_selected_action": first.pk, **confirmed}
            pages[f"replay {confirmed}"] = operator.post(reverse(EVENTS), chosen, follow=True)
    said = {name: english_of(page.content.decode(), people()) for name, page in pages.items()}
    assert {name: words for name, words in said.items() if words} == {}


@pytest.mark.parametrize(
    "address",
    ["/identity/account/", "/identity/login/", "/identity/login/?missing=age_over_18",
     "/identity/login/?missing=level_2", "/identity/connect/", "/identity/disconnect/",
     "/identity/callback/?state=x&code=y"],
)  # fmt: skip
def test_peoples_pages(sessions: dict[str, str], address: str) -> None:
    """As everybody meets them, whatever their state."""
    with override_settings(LANGUAGE_CODE="ar"):
        pages = {
            person: arabic(session).get(address, follow=True)
            for person, session in sessions.items()
        }
    said = {name: english_of(page.content.decode(), people()) for name, page in pages.items()}
    assert {name: words for name, words in said.items() if words} == {}
