"""How long a key set serves: five minutes from the start of its fetch, at most."""

import os
from concurrent.futures import ThreadPoolExecutor

from django.test import override_settings

from django_identity import conf
from django_identity.conf import Application
from django_identity.credentials import RejectionReason
from django_identity.lifecycle import key_sets
from tests.fake_service import FakeService, serving
from tests.lifecycle.key_sets.origin import (
    claims_answer,
    publish,
    slowly,
)
from tests.lifecycle.key_sets.steps import (
    poll,
    reason_of,
    time_passes,
)

# Age


def test_five_minutes_and_no_longer(origin: FakeService, site: Application):
    """Whatever the service says of caching. Then a key that has left the set verifies nothing."""
    publish(origin, "key-1", headers="Cache-Control: max-age=0\r\n")
    held = key_sets.current(site)
    publish(origin, "key-2")
    time_passes(299)
    for _ in range(10):
        key_sets.verify_answer(site, claims_answer(origin, "key-1"), subject="subject-1")
        assert key_sets.current(site) is held
    assert origin.calls("jwks") == 1
    time_passes(1.1)
    assert reason_of(site, origin, "key-1") is RejectionReason.KEY
    assert key_sets.current(site).kids == ("key-2",)


def test_many_threads_without_a_set_make_one_fetch(origin: FakeService, site: Application):
    """Everybody else waits for it."""
    origin.answers["jwks"] = slowly(0.2, "key-1")
    with ThreadPoolExecutor(20) as pool:
        assert {*pool.map(lambda _: key_sets.current(site).kids, range(20))} == {("key-1",)}
    assert origin.calls("jwks") == 1


def test_the_age_counts_from_the_start_of_the_fetch(origin: FakeService, site: Application):
    """An answer that took a second to come is a second old."""
    origin.answers["jwks"] = slowly(0.2, "key-1")
    key_sets.current(site)
    publish(origin, "key-2")
    time_passes(299.8)
    assert key_sets.current(site).kids == ("key-2",)


# Who shares


def test_applications_of_one_origin_share_the_set(origin: FakeService):
    """Live and test have one origin, and so have two applications; another origin is another."""
    with serving() as another:
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


def test_a_child_process_fetches_for_itself(origin: FakeService, site: Application):
    """It has none of its parent's threads, one of which may be fetching."""
    origin.answers["jwks"] = slowly(0.3, "key-1")
    with ThreadPoolExecutor(1) as pool:
        mine = pool.submit(key_sets.current, site)
        poll(lambda: origin.calls("jwks") == 1)
        child = os.fork()
        if child == 0:
            os._exit(0 if key_sets.current(site).kids == ("key-1",) else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert mine.result().kids == ("key-1",)
