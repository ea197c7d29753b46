"""What an erasure left is found by model and field, and never told by its value."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.auth.models import User
from django.contrib.contenttypes.models import ContentType
from django.contrib.sessions.backends.db import SessionStore
from django.core.cache import caches
from django.core.management import call_command

from django_identity.lifecycle import audit
from tests.factories import make_event, make_identity, make_user
from tests.leaky.models import Author, Book, Copy, HistoricalUser, Letter, SpecialCopy

pytestmark = pytest.mark.django_db

ADDRESS = "zoë.lovelace@example.com"
SUBJECT = "subject-of-zoë"


@pytest.fixture
def person() -> audit.Known:
    """What was known of somebody who is gone. Two others are there."""
    user = make_user("zoe-the-first", first_name="Zoë", last_name="Lovelace-King", email=ADDRESS)
    identity = make_identity(user, subject=SUBJECT)
    known = audit.known_of_account(user) | audit.known_of_identities([identity])
    user.delete()
    make_user("max", first_name="Max", last_name="Mayer")
    make_user("mia", first_name="Mia", last_name="Mayer")
    return known


def hits(person: audit.Known) -> dict[str, int]:
    return dict(audit.search(person).hits)


def test_an_erasure_that_left_nothing(person: audit.Known) -> None:
    findings = audit.search(person)
    assert (findings.hits, findings.unsure) == ({}, {})
    assert findings.unread == {"leaky.Elsewhere": "no table"}


@pytest.mark.parametrize(
    ("columns", "field"),
    [
        ({"text": f"Dear {ADDRESS.upper()}, hello"}, "text"),
        ({"text": json.dumps({"to": ADDRESS})}, "text"),
        ({"text": "/lists?address=zo%C3%AB.lovelace%40example.com"}, "text"),
        ({"data": {"people": [{"name": "zoë lovelace-king"}]}}, "data"),
        ({"blob": b"\x80\x04" + SUBJECT.encode() + b"\xff."}, "blob"),
        ({"upload": "passports/Zoë_Lovelace-King.pdf"}, "upload"),
    ],
    ids=["other case", "escaped in JSON", "in an address", "JSON", "binary", "name of a file"],
)
def test_columns_of_each_kind(person: audit.Known, columns: dict[str, object], field: str) -> None:
    """Also behind a manager that hides the row."""
    Copy(**columns).save_base(force_insert=True)
    assert hits(person) == {f"leaky.Copy.{field}": 1}


def test_models_of_each_kind(person: audit.Known) -> None:
    """Multi-table, a key that is a name, history, the admin's log."""
    SpecialCopy.objects.create(note=ADDRESS, text=ADDRESS)
    Book.objects.create(author=Author.objects.create(name="zoe-the-first"))
    HistoricalUser.objects.create(first_name="Zoë", email=ADDRESS)
    LogEntry.objects.create(
        user=User.objects.get(username="max"),
        content_type=ContentType.objects.get_for_model(User),
        object_repr=ADDRESS,
        action_flag=CHANGE,
    )
    assert hits(person) == {
        "leaky.SpecialCopy.note": 1,
        "leaky.Copy.text": 1,
        "leaky.Author.name": 1,
        "leaky.Book.author": 1,
        "leaky.HistoricalUser.email": 1,
        "admin.LogEntry.object_repr": 1,
    }


def test_a_session_in_a_table(person: audit.Known) -> None:
    session = SessionStore()
    session["address"] = ADDRESS
    session.save()
    assert hits(person) == {"sessions.Session.session_data": 1}


@pytest.mark.django_db(transaction=True)
def test_a_cache_in_a_table(person: audit.Known, settings: pytest.FixtureRequest) -> None:
    settings.CACHES = {  # type: ignore[attr-defined]
        **settings.CACHES,  # type: ignore[attr-defined]
        "pages": {
            "BACKEND": "django.core.cache.backends.db.DatabaseCache",
            "LOCATION": "cached_pages",
        },
    }
    call_command("createcachetable")
    caches["pages"].set("page-1", {"address": ADDRESS})
    caches["pages"].set("page-2", "nobody")
    assert hits(person) == {"CACHES.pages": 1}


def test_a_column_that_reads_in_its_own_way(person: audit.Known) -> None:
    letter = Letter.objects.create(text=ADDRESS)
    assert hits(person) == {"leaky.Letter.text": 1}
    Letter.objects.filter(pk=letter.pk).update(text="!broken")
    findings = audit.search(person)
    assert findings.unread["leaky.Letter (default)"] == "ValueError"


def test_short_and_common_words_are_counted_apart(person: audit.Known) -> None:
    """ "Ada" is in "Canada", and half of all people may be called Lovelace-King."""
    User.objects.filter(username="max").update(last_name="Lovelace-King")
    Copy(text="The Zoëtrope was shown in Canada").save_base(force_insert=True)
    findings = audit.search(person)
    assert findings.hits == {}
    assert findings.unsure == {"leaky.Copy.text": 1, "auth.User.last_name": 1}


def test_a_part_of_the_name_that_nobody_else_has(person: audit.Known) -> None:
    Copy(text="Ms. Lovelace-King called").save_base(force_insert=True)
    assert hits(person) == {"leaky.Copy.text": 1}


def test_a_database_that_is_away_is_said() -> None:
    """In a process of its own: Django lets a test reach its own databases alone."""
    look = (
        "import django; from django.conf import settings; "
        "away = {'ENGINE': 'django.db.backends.sqlite3', 'NAME': '/nowhere/at/all.sqlite3'}; "
        "settings.DATABASES = {**settings.DATABASES, 'away': away}; django.setup(); "
        "from django_identity.lifecycle import audit; print(audit.tables()[1]['away'])"
    )
    environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "tests.settings"}
    said = subprocess.run(
        [sys.executable, "-c", look], env=environment, capture_output=True, text=True, check=True
    )
    assert said.stdout == "OperationalError\n"


def test_a_huge_value_is_said(person: audit.Known, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit, "MOST_CHARACTERS", 20)
    Copy(text="x" * 21, data={"much": "y" * 20}).save_base(force_insert=True)
    Copy(text=SUBJECT).save_base(force_insert=True)
    findings = audit.search(person)
    assert findings.hits == {"leaky.Copy.text": 1}
    assert findings.unread["leaky.Copy.text"] == "1 too long"
    assert findings.unread["leaky.Copy.data"] == "1 too long"


def test_many_rows(person: audit.Known, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit, "ROWS_AT_ONCE", 2)
    for _ in range(5):
        HistoricalUser.objects.create(first_name="-", email=ADDRESS)
    assert hits(person) == {"leaky.HistoricalUser.email": 5}


def test_our_own_emptied_events_keep_their_digests(person: audit.Known) -> None:
    """They say so on the privacy page; any other copy of the digest is found."""
    identity = make_identity(User.objects.get(username="max"), subject=SUBJECT)
    make_event(identity, "claim.issued", event_id="", subject="", payload=None)
    Copy(text=identity.subject_digest).save_base(force_insert=True)
    identity.delete()
    assert hits(person) == {"leaky.Copy.text": 1}


def test_nobody_sees_what_is_looked_for(person: audit.Known) -> None:
    assert "zo" not in repr(person).lower()
