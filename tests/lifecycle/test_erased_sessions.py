"""Erasure: the rows of a person's sessions go too, where the site keeps them in the database."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.contrib.sessions.backends.cached_db import SessionStore as CachedStore
from django.contrib.sessions.models import Session
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from django_identity.lifecycle.erasure import erasure
from django_identity.models import ErasureReceipt, LinkedIdentity
from tests.deliveries import deliver
from tests.lifecycle.test_erasure import Failing, with_policy
from tests.records import make_identity, make_user

pytestmark = pytest.mark.django_db(transaction=True)


def signed_in(user: User, *, note: str = "") -> Client:
    """A browser of ``user``'s, in whose session the site has put something."""
    browser = Client()
    browser.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
    session = browser.session
    session["note"] = note
    session.save()
    return browser


def notes() -> set[str]:
    """What the sessions say that are left."""
    return {session.get_decoded().get("note", "") for session in Session.objects.all()}


def erase(subject: str = "subject-1") -> ErasureReceipt:
    deliver("data.deletion_requested", subject=subject)
    erasure.retry_pending()
    return ErasureReceipt.objects.latest("pk")


def test_all_sessions_of_the_person_go() -> None:
    """However they began, in whatever browser; those of others and of nobody stay."""
    ada, grace = make_user("ada"), make_user("grace")
    make_identity(ada)
    for user, note in ((ada, "hers"), (ada, "hers too"), (grace, "of another")):
        signed_in(user, note=note)
    nobodys = Client().session
    nobodys["note"] = "of nobody"
    nobodys.save()
    receipt = erase()
    assert receipt.counts["session"] == 2
    assert notes() == {"of another", "of nobody"}


def test_a_user_whose_number_begins_alike_keeps_theirs() -> None:
    """The whole key is compared."""
    ada = make_user("ada")
    make_identity(ada)
    other = User.objects.create(pk=int(f"{ada.pk}0"), username="grace")
    signed_in(other, note="of another")
    assert erase().counts["session"] == 0
    assert notes() == {"of another"}


def test_they_go_though_the_person_disconnected_meanwhile() -> None:
    """The receipt knows whose account it was."""
    ada = make_user()
    identity = make_identity(ada)
    signed_in(ada, note="hers")
    deliver("data.deletion_requested")
    identity.delete()
    assert erasure.retry_pending() == 1
    assert notes() == set()


def test_nobody_is_signed_out_for_a_subject_that_is_not_linked() -> None:
    signed_in(make_user(), note="of another")
    assert erase("stranger").counts["session"] == 0
    assert notes() == {"of another"}


def test_a_session_in_the_cache_as_well_goes_from_both(settings: Any) -> None:
    """With ``cached_db`` the cache would answer for the row that is gone."""
    settings.SESSION_ENGINE = "django.contrib.sessions.backends.cached_db"
    ada = make_user()
    make_identity(ada)
    key = signed_in(ada, note="hers").session.session_key
    assert CachedStore(key).load()["note"] == "hers"
    assert erase().counts["session"] == 1
    assert CachedStore(key).load() == {}


@pytest.mark.parametrize("engine", ["cache", "signed_cookies"])
def test_what_cannot_be_listed_is_not_searched(settings: Any, engine: str) -> None:
    """Such sessions end with the account, and the erasure does not fail over them."""
    settings.SESSION_ENGINE = f"django.contrib.sessions.backends.{engine}"
    ada = make_user()
    make_identity(ada)
    browser = signed_in(ada)
    assert erase().erased_at is not None
    assert browser.get("/").content == b""


def test_if_the_sites_part_fails_they_stay_with_the_rest(settings: Any) -> None:
    """All of it or nothing; when it is tried again they go."""
    with_policy(settings, "Failing")
    ada = make_user()
    make_identity(ada)
    signed_in(ada, note="hers")
    assert erase().erased_at is None
    assert notes() == {"hers"}
    assert LinkedIdentity.objects.exists()
    ErasureReceipt.objects.update(next_attempt_at=ErasureReceipt.objects.get().requested_at)
    Failing.fails = False
    try:
        assert erasure.retry_pending() == 1
    finally:
        Failing.fails = True
    assert notes() == set()


def test_sessions_are_read_once_however_many() -> None:
    """And before the transaction, which locks the person's rows; after it only what is new."""
    ada = make_user("ada")
    make_identity(ada)
    for number in range(5):
        signed_in(make_user(f"other-{number}"))
    deliver("data.deletion_requested")
    with CaptureQueriesContext(connection) as captured:
        assert erasure.retry_pending() == 1
    sent = [query["sql"] for query in captured]
    reading = [number for number, sql in enumerate(sent) if "django_session" in sql]
    assert ["expire_date" in sent[number] for number in reading] == [False, True]
    begins = next(number for number, sql in enumerate(sent) if sql.startswith("BEGIN"))
    assert reading[0] < begins
