"""The key set that is believed: how it is asked for, how long it serves, what a new key costs."""

import json
import os
import time
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from django.test import override_settings

from django_identity import conf
from django_identity.credentials import RejectionReason
from django_identity.exceptions import (
    CredentialRejected,
    KeysUnavailable,
    SubjectMismatch,
)
from django_identity.lifecycle.said import key_sets
from django_identity.service.answers import ClaimsAnswer
from tests.credentials import issuer
from tests.fake_service import answer, html, http, redirect_to, serving, truncated

KEYS = {"key-1": issuer.KEY, "key-2": issuer.OTHER_KEY}


def document(*kids):
    return json.dumps({"keys": [issuer.jwk(kid, KEYS[kid]) for kid in kids]}).encode()


def publish(service, *kids, headers=""):
    """From now on the key set is this one."""
    service.answers["jwks"] = http(document(*kids), headers=headers)


def slowly(seconds, *kids):
    """An answer that takes its time."""

    def answer_late(connection):
        time.sleep(seconds)
        connection.sendall(http(document(*kids)))

    return answer_late


def claims_answer(service, kid, *, signed_by="", **head):
    """The service's claims response with a credential signed by the key of that name."""
    now = int(time.time())
    claims = {"iss": service.origin, "aud": service.client_id, "sub": service.subject}
    body = issuer.payload(**claims, iat=now, exp=now + 86_400)
    text = issuer.join(
        issuer.token(
            issuer.header(kid=kid, **head),
            body,
            KEYS.get(signed_by or kid, issuer.KEY),
        ),
        issuer.DISCLOSURES,
    )
    return ClaimsAnswer(service.subject, (), text)


def time_passes(seconds):
    """Make all key sets of this process older."""
    for origin in key_sets._origins.values():
        origin.began -= seconds
        origin.tries = deque(
            (moment - seconds for moment in origin.tries),
            origin.tries.maxlen,
        )


BUSY = answer({"error": "busy"}, status="503 Busy")
#: Only a 200 answers, however good the rest looks.
BAD = ("201 Created", "206 Partial", "400 Bad", "404 No", "500 Oops")


@pytest.fixture
def origin(service):
    publish(service, "key-1")
    return service


@pytest.fixture
def site(origin):
    return conf.application()


def verified(site, service, kid, **head):
    given = claims_answer(service, kid, **head)
    return key_sets.verify_answer(site, given, subject=service.subject)


def reason_of(site, service, kid, **head):
    """Why a credential under that key is rejected."""
    with pytest.raises(CredentialRejected) as caught:
        verified(site, service, kid, **head)
    return caught.value.reason


def must_wait(site, service, kid):
    """Nothing is said of the credential: it may be asked again later."""
    with pytest.raises(KeysUnavailable):
        verified(site, service, kid)


# How it is asked for, and which answers are one


def test_the_request_carries_nothing(origin, site):
    """No token and no cookie; from the settings' origin and nowhere else.

    Key sets of up to 64 KB are served as all sorts of things.
    """
    body = document("key-1").ljust(64 * 1024)
    headers = "Set-Cookie: a=b\r\nContent-Type: text/html\r\n"
    origin.answers["jwks"] = http(body, headers=headers)
    assert repr(key_sets.current(site)) == "<KeySet ['key-1']>"
    time_passes(301)
    key_sets.current(site)
    assert len(origin.requests) == 2
    for name, target, raw in origin.requests:
        assert name == "jwks"
        assert target == "/.well-known/jwks.json"
        sent = raw.lower()
        assert b"authorization" not in sent
        assert b"cookie" not in sent
        assert b"accept-encoding: identity" in sent


@pytest.mark.parametrize(
    "given",
    [
        html(),
        answer({}),
        http(b'{"keys": [], "keys": []}'),
        http(document().ljust(64 * 1024 + 1)),
        truncated,
        BUSY,
        *(http(document("key-2"), status=each) for each in BAD),
    ],
    ids=["html", "no keys", "repeated", "a byte too long", "truncated", "busy", *BAD],
)
def test_a_failure_replaces_nothing(origin, site, given):
    """The keys that are held go on serving to the end of their five minutes, and no longer.

    Then it is "try later", never "forged".
    """
    held = key_sets.current(site)
    origin.answers["jwks"] = given
    must_wait(site, origin, "key-2")
    # A broken connection is a reason to read once more.
    assert origin.calls("jwks") == (3 if given is truncated else 2)
    time_passes(299)
    assert key_sets.current(site) is held
    assert verified(site, origin, "key-1")
    time_passes(2)
    must_wait(site, origin, "key-1")


def test_no_redirect_is_followed(origin, site):
    """Who can answer for the origin cannot send us to another one."""
    with serving() as elsewhere:
        publish(elsewhere, "key-1")
        origin.answers["jwks"] = redirect_to(elsewhere.origin, 302)
        with pytest.raises(KeysUnavailable):
            key_sets.current(site)
        assert elsewhere.requests == []


@pytest.mark.parametrize(
    "keys",
    [[], [{"kty": "RSA", "kid": "key-1"}]],
    ids=["none", "unusable"],
)
def test_a_set_without_usable_keys_is_an_answer(origin, site, keys):
    """It replaces the set: that is how a provider pulls the plug."""
    key_sets.current(site)
    origin.answers["jwks"] = answer({"keys": keys})
    assert reason_of(site, origin, "key-2") is RejectionReason.KEY
    assert reason_of(site, origin, "key-1") is RejectionReason.KEY
    assert origin.calls("jwks") == 3


# How long it serves, and whom


def test_five_minutes_and_no_longer(origin, site):
    """Whatever the service says of caching. Then a key that has left the set verifies nothing."""
    publish(origin, "key-1", headers="Cache-Control: max-age=0\r\n")
    held = key_sets.current(site)
    publish(origin, "key-2")
    time_passes(299)
    for _ in range(10):
        assert verified(site, origin, "key-1")
        assert key_sets.current(site) is held
    assert origin.calls("jwks") == 1
    time_passes(1.1)
    assert reason_of(site, origin, "key-1") is RejectionReason.KEY
    assert repr(key_sets.current(site)) == "<KeySet ['key-2']>"


def test_the_age_counts_from_the_start_of_the_fetch(origin, site):
    """An answer that took a second to come is a second old."""
    origin.answers["jwks"] = slowly(0.2, "key-1")
    key_sets.current(site)
    publish(origin, "key-2")
    time_passes(299.8)
    assert repr(key_sets.current(site)) == "<KeySet ['key-2']>"


def test_each_origin_has_its_own_set(origin):
    """Live and test have one origin; another origin is another."""
    with serving() as another:
        publish(another, "key-2")
        found = []
        for running, client in ((origin, "a"), (origin, "b"), (another, "a")):
            setting = running.settings(CLIENT_ID=client)
            with override_settings(DJANGO_IDENTITY=setting):
                found.append(key_sets.current(conf.application()))
        assert found[0] is found[1]
        assert repr(found[2]) == "<KeySet ['key-2']>"
        assert origin.calls("jwks") == 1
        assert another.calls("jwks") == 1


@pytest.mark.filterwarnings(
    "ignore:This process .* is multi-threaded:DeprecationWarning",
)
def test_a_child_process_fetches_for_itself(origin, site):
    """It has none of its parent's threads, one of which may be fetching."""
    origin.answers["jwks"] = slowly(0.1, "key-1")
    with ThreadPoolExecutor(1) as pool:
        mine = pool.submit(key_sets.current, site)
        while not origin.requests:
            time.sleep(0.01)
        child = os.fork()
        if child == 0:
            os._exit(0 if repr(key_sets.current(site)) == "<KeySet ['key-1']>" else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert repr(mine.result()) == "<KeySet ['key-1']>"


# What an unknown ``kid`` costs: two fetches in 30 seconds, whoever asks


@pytest.mark.parametrize("held", [False, True], ids=["none is held", "its key is new"])
def test_many_threads_make_one_fetch(origin, site, *, held):
    """All of them wait for it, and all of them find the key."""
    if held:
        key_sets.current(site)
    origin.answers["jwks"] = slowly(0.1, "key-1", "key-2")
    with ThreadPoolExecutor(20) as pool:
        kids = pool.map(lambda _: verified(site, origin, "key-2").kid, range(20))
    assert [*kids] == ["key-2"] * 20
    assert origin.calls("jwks") == 1 + held


def test_a_flood_of_unknown_kids_costs_two_fetches(origin, site):
    """So that a second rotation in a row is found, too; then it is "later". Others come in."""
    key_sets.current(site)
    assert reason_of(site, origin, "no-0") is RejectionReason.KEY
    assert reason_of(site, origin, "no-1") is RejectionReason.KEY
    for n in range(2, 20):
        must_wait(site, origin, f"no-{n}")
    assert origin.calls("jwks") == 3
    assert verified(site, origin, "key-1")
    time_passes(29)
    must_wait(site, origin, "no-20")
    time_passes(1.1)
    assert reason_of(site, origin, "no-21") is RejectionReason.KEY
    assert origin.calls("jwks") == 4


@pytest.mark.parametrize("held", [False, True], ids=["none is held", "a flood"])
def test_failed_fetches_are_two_in_half_a_minute(origin, site, *, held):
    """A service that fails is not asked for each person who comes: attempts are counted."""
    if held:
        key_sets.current(site)
    origin.answers["jwks"] = BUSY

    def attempt():
        must_wait(site, origin, "no-1")
        return origin.calls("jwks") - held

    assert [attempt(), attempt(), attempt()] == [1, 2, 2]
    time_passes(29)
    assert attempt() == 2
    time_passes(1.1)
    assert [attempt(), attempt(), attempt()] == [3, 4, 4]
    publish(origin, "key-1", "key-2")
    time_passes(30.1)
    assert verified(site, origin, "key-2")


@pytest.mark.parametrize("kid", ["key-1", "key-2"], ids=["known", "new"])
def test_whose_credential_it_is_counts(origin, site, kid):
    """Newer keys are no way around the subject, of the credential or of the answer."""
    key_sets.current(site)
    publish(origin, "key-1", "key-2")
    given = claims_answer(origin, kid)
    with pytest.raises(SubjectMismatch):
        key_sets.verify_answer(site, given, subject="subject-2")
    with pytest.raises(CredentialRejected) as caught:
        key_sets.verify_answer(
            site,
            replace(given, user_id="subject-2"),
            subject="subject-2",
        )
    assert caught.value.reason is RejectionReason.PAYLOAD_SUB


@pytest.mark.parametrize(
    ("kid", "head"),
    [
        ("no-1", {"alg": "none"}),
        ("no-1", {"typ": "JWT"}),
        ("no-1", {"crit": []}),
        ("no-1", {"jku": "x"}),
        ("key-1", {"signed_by": "key-2"}),
    ],
)
def test_junk_asks_for_nothing(origin, site, kid, head):
    """What is refused for itself does not get its ``kid`` looked up, nor does a bad signature."""
    key_sets.current(site)
    assert reason_of(site, origin, kid, **head) is not RejectionReason.KEY
    assert origin.calls("jwks") == 1
