"""Erasing sessions of a site at work: many of them, others who write, a cache, older keys."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth import SESSION_KEY
from django.contrib.auth.models import User
from django.contrib.sessions.backends.base import UpdateError
from django.contrib.sessions.backends.cached_db import SessionStore as CachedStore
from django.contrib.sessions.backends.db import SessionStore as DBStore
from django.contrib.sessions.models import Session
from django.core.cache.backends.locmem import LocMemCache
from django.db import connection
from django.utils import timezone

from django_identity.lifecycle.erasure import erasure, sessions
from django_identity.models import ErasureReceipt
from django_identity.policy import IdentityPolicy
from tests.deliveries import deliver
from tests.lifecycle.session_engine import SessionStore
from tests.lifecycle.test_erased_sessions import erase, signed_in
from tests.records import make_identity, make_user

pytestmark = pytest.mark.django_db(transaction=True)

ENGINES = {"db": DBStore, "cached_db": CachedStore}


def begin(user: User | None, key: str, *, store: type[DBStore] = DBStore) -> None:
    """A session of ``user``'s under that key, which has been used since."""
    said = {"note": key} if user is None else {"note": key, SESSION_KEY: str(user.pk)}
    ends_at = store().get_expiry_date()
    Session.objects.create(session_key=key, session_data=store().encode(said), expire_date=ends_at)
    assert store(key).load() == said


def elsewhere(work: Callable[[], object]) -> None:
    """Do ``work`` on a database connection of its own; SQLite's waits for a second at most."""

    def alone() -> None:
        try:
            if connection.vendor == "sqlite":
                with connection.cursor() as cursor:
                    cursor.execute("PRAGMA busy_timeout = 1000")
            work()
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as pool:
        pool.submit(alone).result()


@pytest.fixture
def ada() -> User:
    user = make_user("ada")
    make_identity(user)
    return user


@pytest.fixture
def own_engine(settings: Any) -> str:
    settings.SESSION_ENGINE = "tests.lifecycle.session_engine"
    return "tests.lifecycle.session_engine"


def test_an_engine_of_the_sites_own_opens_its_own_sessions(ada: User, own_engine: str) -> None:
    """Its rows are Django's, and only it can read them."""
    begin(ada, "a" * 32, store=SessionStore)
    assert erase().counts["session"] == 1
    assert not Session.objects.exists()


def test_a_row_that_nobody_can_read_is_passed_over(ada: User, own_engine: str) -> None:
    """One that is damaged must not keep everybody from being erased."""
    begin(ada, "b" * 32, store=SessionStore)
    Session.objects.create(session_key="a" * 32, session_data="damaged", expire_date=timezone.now())
    assert erase().counts["session"] == 1


def test_reading_them_holds_up_nobody_who_writes(ada: User, own_engine: str) -> None:
    """SQLite has one lock, and whoever reads through holds it."""
    said = SessionStore().encode({"note": "of nobody"})
    ends_at = timezone.now() + timedelta(days=1)
    Session.objects.bulk_create(
        Session(session_key=f"{number:032}", session_data=said, expire_date=ends_at)
        for number in range(2 * sessions.BATCH + 100)
    )
    SessionStore.meanwhile.append(lambda: elsewhere(lambda: make_user("grace")))
    assert erase().erased_at is not None
    assert User.objects.filter(username="grace").exists()


def test_every_batch_is_looked_through(ada: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "BATCH", 3)
    for number in range(9):
        begin(ada if number % 2 else None, f"{number:032}")
    assert erase().counts["session"] == 4
    assert Session.objects.count() == 5


def test_a_session_that_begins_meanwhile_goes_too(ada: User, own_engine: str) -> None:
    """Until the account is shut the person can sign in with a password."""
    begin(ada, "b" * 32, store=SessionStore)
    SessionStore.meanwhile.append(lambda: begin(ada, "a" * 32, store=SessionStore))
    assert erase().counts["session"] == 1
    assert not Session.objects.exists()


class Watched(IdentityPolicy):
    """Somebody opens a page while the account is being erased."""

    def erase_user(self, user: Any) -> None:
        super().erase_user(user)
        elsewhere(lambda: CachedStore("a" * 32).load())


def test_what_is_put_back_into_the_cache_meanwhile_goes_too(settings: Any, ada: User) -> None:
    """Until the commit the row is there for others, and they put it where they look first."""
    settings.SESSION_ENGINE = "django.contrib.sessions.backends.cached_db"
    given = settings.DJANGO_IDENTITY["default"]
    settings.DJANGO_IDENTITY = {"default": {**given, "POLICY": f"{__name__}.Watched"}}
    begin(ada, "a" * 32, store=CachedStore)
    erase()
    assert CachedStore("a" * 32).load() == {}


class Unsteady(LocMemCache):
    """A cache that is away for a while."""

    is_away = False

    def delete(self, *args: Any, **kwargs: Any) -> bool:
        if self.is_away:
            raise ConnectionError("no answer about " + "a" * 32)
        return super().delete(*args, **kwargs)


def test_a_cache_that_does_not_answer_puts_the_erasure_off(
    settings: Any, ada: User, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it holds would come back with it; it is loud, and done when the cache is there."""
    settings.CACHES = {"default": {"BACKEND": f"{__name__}.Unsteady"}}
    settings.SESSION_ENGINE = "django.contrib.sessions.backends.cached_db"
    begin(ada, "a" * 32, store=CachedStore)
    monkeypatch.setattr(Unsteady, "is_away", True)
    assert erase().erased_at is None
    assert [record.levelname for record in caplog.records] == ["ERROR"]
    assert "a" * 32 not in caplog.text
    assert Session.objects.exists()
    monkeypatch.setattr(Unsteady, "is_away", False)
    ErasureReceipt.objects.update(next_attempt_at=timezone.now())
    assert erasure.retry_pending() == 1
    assert CachedStore("a" * 32).load() == {}


@pytest.mark.parametrize("engine", ENGINES)
def test_a_request_on_its_way_does_not_bring_one_back(
    settings: Any, ada: User, engine: str
) -> None:
    """It read the session before the erasure and saves it after."""
    settings.SESSION_ENGINE = f"django.contrib.sessions.backends.{engine}"
    store = ENGINES[engine]
    begin(ada, "a" * 32, store=store)
    under_way = store("a" * 32)
    under_way["note"] = "changed"
    erase()
    with pytest.raises(UpdateError):
        under_way.save()
    assert store("a" * 32).load() == {}


def test_sessions_of_a_key_that_is_gone_are_passed_over_in_silence(
    settings: Any, ada: User, caplog: pytest.LogCaptureFixture
) -> None:
    """There may be a million of them, and each erasure meets all."""
    key = settings.SECRET_KEY
    settings.SECRET_KEY = "another key for tests alone, of no use anywhere else"
    signed_in(make_user("grace"))
    settings.SECRET_KEY = key
    signed_in(ada)
    assert erase().counts["session"] == 1
    assert caplog.records == []
    assert Session.objects.count() == 1


def test_the_database_that_is_written_to_is_asked(settings: Any, ada: User) -> None:
    """A replica may not know yet who has just come."""

    class Replicated:
        asked: list[str] = []

        def db_for_read(self, model: type, **hints: Any) -> None:
            if model is Session:
                self.asked.append("a replica")

        def db_for_write(self, model: type, **hints: Any) -> None:
            if model is Session:
                self.asked.append("the first")

    settings.DATABASE_ROUTERS = [Replicated()]
    begin(make_user("grace"), "a" * 32)
    Replicated.asked.clear()
    deliver("data.deletion_requested")
    assert erasure.retry_pending() == 1
    assert set(Replicated.asked) == {"the first"}


def test_a_worker_takes_no_more_than_it_has_time_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each may have to read a million sessions; killed in the middle, none would be done."""
    for subject in ("subject-1", "subject-2"):
        deliver("data.deletion_requested", subject=subject)
    monkeypatch.setattr(erasure, "LONGEST_SECONDS", 0.0)
    assert [erasure.retry_pending() for _ in range(3)] == [1, 1, 0]


WITHOUT_SESSIONS = """
import django
from django.conf import settings
from tests import settings as given

apps = {"django.contrib.admin", "django.contrib.messages", "django.contrib.sessions"}
settings.configure(
    SECRET_KEY="a key for tests alone, of no use anywhere else",
    INSTALLED_APPS=[app for app in given.INSTALLED_APPS if app not in apps],
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}},
    DJANGO_IDENTITY=given.DJANGO_IDENTITY,
    USE_TZ=True,
)
django.setup()
from django.core.management import call_command

call_command("migrate", verbosity=0, skip_checks=True)
from tests.records import make_identity, make_user

make_identity(make_user())
call_command("identity_erase", "subject-1", "--yes", skip_checks=True)
"""


def test_a_site_without_sessions_erases() -> None:
    """Their engine has a default all the same."""
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_SESSIONS], capture_output=True, text=True, check=False
    )
    assert "1 linkedidentity" in done.stdout, done.stderr
