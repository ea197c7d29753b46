"""What processes and applications share, and what they believe of it."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from django.core import signing
from django.core.cache import cache
from django.test import override_settings

from django_identity import conf
from django_identity.conf import Application
from django_identity.lifecycle.upkeep import key_sets
from tests.hostile import (
    HostileService,
    hostile_service,
)
from tests.lifecycle.key_sets.origin import (
    document,
    publish,
    slowly,
)
from tests.lifecycle.key_sets.steps import (
    as_another_process,
    failing,
    held_in_cache,
    opened,
)

CACHE_TABLE = (
    "CREATE TABLE shared (cache_key varchar(255) PRIMARY KEY, value text NOT NULL, "
    "expires datetime NOT NULL)"
)


# Who shares


def test_applications_of_one_origin_share_the_set(origin: HostileService):
    """Live and test have one origin, and so have two applications; another origin is another."""
    with hostile_service() as another:
        publish(another, "key-2")
        setting = {
            "default": origin.settings(),
            "second": origin.settings(CLIENT_ID="client-2"),
            "third": another.settings(),
        }
        with override_settings(DJANGO_IDENTITY=setting):
            first = key_sets.current(conf.application())
            assert key_sets.current(conf.application("second")) is first
            assert key_sets.current(conf.application("third")).kids == ("key-2",)
        assert (origin.calls("jwks"), another.calls("jwks")) == (1, 1)


# What the shared cache holds


def test_the_shared_cache_holds_signed_text(origin: HostileService, site: Application):
    """No pickled key objects: text, with the answer in it as it came."""
    key_sets.current(site)
    value = cache.get(held_in_cache(site))
    assert isinstance(value, str)
    held = opened(site, value)
    assert held["text"] == document("key-1")


FOREIGN = {
    "text": lambda site: document("evil"),
    "dict": lambda site: {"text": document("evil"), "began_at": time.time(), "lifetime": 300.0},
    "bytes": lambda site: b"\x80\x04",
    "number": lambda site: 1,
    "other key": lambda site: signing.dumps(
        {"text": document("evil"), "began_at": time.time(), "lifetime": 300.0},
        key="another",
        salt=f"django_identity.key_sets.{site.api_origin}",
    ),
    "other origin": lambda site: key_sets.shared_value(
        replace(site, api_origin="http://127.0.0.1:1"), document("evil"), began_at=time.time()
    ),
    "other purpose": lambda site: signing.dumps({"text": document("evil")}),
    "changed": lambda site: (
        key_sets.shared_value(site, document("evil"), began_at=time.time())[:-1] + "_"
    ),
}


@pytest.mark.parametrize("foreign", FOREIGN.values(), ids=list(FOREIGN))
def test_a_value_that_this_site_did_not_sign_is_refused(origin, site: Application, foreign):
    """Who can write to the cache cannot forge credentials: it is logged, and the service asked."""
    key_sets.current(site)
    cache.set(held_in_cache(site), foreign(site))
    as_another_process()
    assert key_sets.current(site).kids == ("key-1",)
    assert origin.calls("jwks") == 2


def test_a_cached_value_is_json(origin: HostileService, site: Application):
    """The signed value is readable by any process of the site, of any version of Python."""
    key_sets.current(site)
    value = cache.get(held_in_cache(site))
    assert json.loads(signing.b64_decode(value.split(":")[0].encode()))["lifetime"] == 300.0


# Processes of their own that share nothing but a cache


class SiteProcess:
    """Another process of the site, which does what it is told."""

    def __init__(self, database: Path, service: HostileService) -> None:
        setting = json.dumps(service.settings(TIMEOUT=5))
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.lifecycle.key_sets.process", setting],
            env={
                **os.environ,
                "DATABASE_URL": f"sqlite:///{database}",
                "DJANGO_SETTINGS_MODULE": "tests.shared_cache_settings",
            },
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def tell(self, line: str) -> None:
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()

    def hear(self) -> str:
        return self._process.stdout.readline().strip()

    def end(self) -> None:
        self._process.communicate()


@pytest.fixture
def processes(origin: HostileService, tmp_path) -> Iterator[list[SiteProcess]]:
    database = tmp_path / "shared.sqlite3"
    with sqlite3.connect(database) as made:
        made.execute(CACHE_TABLE)
    made.close()
    started = [SiteProcess(database, origin) for _ in range(3)]
    assert [process.hear() for process in started] == ["ready"] * 3
    yield started
    for process in started:
        process.end()


def tell_all(processes: list[SiteProcess], line: str) -> list[object]:
    for process in processes:
        process.tell(line)
    return [found for process in processes for found in json.loads(process.hear())]


def test_processes_and_threads_make_one_flight(origin: HostileService, processes):
    """The first fetch, and the one for a new key: one each, and everybody has its keys."""
    origin.answers["jwks"] = slowly(0.3, "key-1")
    assert tell_all(processes, "4 current") == [["key-1"]] * 12
    assert origin.calls("jwks") == 1
    origin.answers["jwks"] = slowly(0.3, "key-1", "key-2")
    assert tell_all(processes, "4 key-2") == [["key-1", "key-2"]] * 12
    assert origin.calls("jwks") == 2
    assert tell_all(processes, "4 no-1") == [["key-1", "key-2"]] * 12
    assert origin.calls("jwks") == 2


def test_processes_back_off_together(origin: HostileService, processes):
    """A service that is down is asked once a second at first, by one of them."""
    failing(origin)
    began = time.monotonic()
    assert tell_all(processes, "4 current") == ["keys_unavailable"] * 12
    assert 1 <= origin.calls("jwks") <= 1 + int(time.monotonic() - began)
