"""How the key set is asked for, and which answers are one."""

import gzip
import time
from dataclasses import replace

import pytest

from django_identity.conf import Application
from django_identity.credentials import RejectionReason
from django_identity.exceptions import KeysUnavailable
from django_identity.lifecycle import key_sets
from tests.fake_service import (
    FakeService,
    answer,
    dribble_body,
    html,
    http,
    huge,
    redirect_to,
    reset,
    serving,
    silent,
    truncated,
)
from tests.lifecycle.key_sets.origin import (
    distrusted_listener,
    document,
    publish,
)
from tests.lifecycle.key_sets.steps import (
    must_wait,
    reason_of,
    time_passes,
)

# The address, and how it is asked


def test_the_request_carries_nothing(origin: FakeService, site: Application):
    """No token and no cookie; from the settings' origin and nowhere else."""
    publish(origin, "key-1", headers="Set-Cookie: a=b\r\n")
    key_sets.current(site)
    time_passes(301)
    key_sets.current(site)
    assert len(origin.requests) == 2
    for name, target, raw in origin.requests:
        assert (name, target) == ("jwks", "/.well-known/jwks.json")
        sent = raw.lower()
        assert b"authorization" not in sent
        assert b"cookie" not in sent
        assert b"accept-encoding: identity" in sent


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_no_redirect_is_followed(origin: FakeService, site: Application, status: int):
    """Who can answer for the origin cannot send us to another one."""
    with serving() as elsewhere:
        publish(elsewhere, "key-1")
        origin.answers["jwks"] = redirect_to(elsewhere.origin, status)
        with pytest.raises(KeysUnavailable):
            key_sets.current(site)
        assert elsewhere.requests == []


def test_a_certificate_must_be_good(origin: FakeService, site: Application):
    """A certificate that nobody vouches for gives no keys, and no setting lets it."""
    with distrusted_listener() as port, pytest.raises(KeysUnavailable):
        key_sets.current(replace(site, api_origin=f"https://127.0.0.1:{port}"))


# The answer's bounds; what is an answer and what is a failure

SPACE = b" " * (64 * 1024 - len(document("key-1")))


def test_64_kb_are_taken_and_not_a_byte_more(origin: FakeService, site: Application):
    """The limit is on the decoded bytes, whether or not the answer names its length."""
    whole = document("key-1").encode() + SPACE
    origin.answers["jwks"] = http(whole)
    assert key_sets.current(site).kids == ("key-1",)
    time_passes(301)
    origin.answers["jwks"] = http(whole + b" ")
    with pytest.raises(KeysUnavailable):
        key_sets.current(site)


def test_a_compressed_answer_is_refused_unread(origin: FakeService, site: Application):
    """A megabyte of nothing is a kilobyte when it is sent; nobody asked for that."""
    bomb = gzip.compress(document("key-1").encode() + b" " * 10_000_000)
    origin.answers["jwks"] = http(bomb, headers="Content-Encoding: gzip\r\n")
    with pytest.raises(KeysUnavailable):
        key_sets.current(site)


def test_32_keys_are_taken_and_not_one_more(origin: FakeService, site: Application):
    """More are no key set."""
    publish(origin, *[f"key-{n}" for n in range(32)])
    assert len(key_sets.current(site)) == 32
    time_passes(301)
    publish(origin, *[f"key-{n}" for n in range(33)])
    with pytest.raises(KeysUnavailable):
        key_sets.current(site)


def test_the_content_type_does_not_matter(origin: FakeService, site: Application):
    """Key sets are served as all sorts of things."""
    publish(origin, "key-1", headers="Content-Type: text/html\r\n")
    assert key_sets.current(site).kids == ("key-1",)


@pytest.mark.parametrize("status", ["201 Created", "206 Partial", "400 Bad", "404 No", "500 Oops"])
def test_an_error_body_is_never_keys(origin: FakeService, site: Application, status: str):
    """Only a 200 answers, however good the rest looks."""
    publish(origin, "key-1", status=status)
    with pytest.raises(KeysUnavailable):
        key_sets.current(site)


MALFORMED = {
    "html": html(),
    "empty": http(b""),
    "list": answer([]),
    "no keys": answer({}),
    "keys null": answer({"keys": None}),
    "keys object": answer({"keys": {}}),
    "repeated": http(b'{"keys": [], "keys": []}'),
    "nan": http(b'{"keys": [NaN]}'),
    "two values": http(b'{"keys": []} {}'),
    "utf-16": http('{"keys": []}'.encode("utf-16")),
    "not utf-8": http(b'{"keys": ["\xff"]}'),
    "surrogate": http(b'{"keys": ["\\ud800"]}'),
    "deep": http(b'{"keys": [' + b"[" * 40 + b"]" * 40 + b"]}"),
    "truncated": truncated,
    "reset": reset,
    "huge": huge,
}


@pytest.mark.parametrize("given", MALFORMED.values(), ids=list(MALFORMED))
def test_a_malformed_answer_replaces_nothing(origin: FakeService, site: Application, given):
    """It is a failure: the keys that are held go on serving."""
    held = key_sets.current(site)
    origin.answers["jwks"] = given
    must_wait(site, origin, "key-2")
    assert origin.calls("jwks") == 2
    assert key_sets.current(site) is held


@pytest.mark.parametrize("given", [silent, dribble_body], ids=lambda f: f.__name__)
def test_a_slow_answer_ends_at_the_deadline(origin: FakeService, site: Application, given):
    """One total deadline, not one for each byte."""
    origin.answers["jwks"] = given
    started = time.monotonic()
    with pytest.raises(KeysUnavailable):
        key_sets.current(replace(site, timeout=0.3))
    assert time.monotonic() - started < 20


@pytest.mark.parametrize("body", [{"keys": []}, {"keys": [{"kty": "RSA", "kid": "key-1"}]}])
def test_a_set_without_usable_keys_is_an_answer(origin: FakeService, site: Application, body):
    """It replaces the set: that is how a provider pulls the plug."""
    key_sets.current(site)
    origin.answers["jwks"] = answer(body)
    assert reason_of(site, origin, "key-2") is RejectionReason.KEY
    assert reason_of(site, origin, "key-1") is RejectionReason.KEY
