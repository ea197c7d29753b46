"""The control API: faults, the request log, the clock, refusals."""

import hashlib
import json
import time

import httpx
import pytest

from tests.sandbox.driver import CONNECT_SCOPES, Sandbox, refusal

JWKS = "/.well-known/jwks.json"


def order(sandbox: Sandbox, kind: str, **about: object) -> None:
    sandbox.control("POST", "faults", **{"kind": kind, "endpoint": "jwks", **about})


def test_status_fault_strikes_as_often_as_ordered(sandbox):
    """One for two requests strikes two; one without a number strikes until it is deleted."""
    page = {"body": "<h1>down</h1>", "headers": {"Content-Type": "text/html"}}
    order(sandbox, "status", times=2, status=503, **page)
    answers = [sandbox.client.get(JWKS) for _ in range(3)]
    assert [answer.status_code for answer in answers] == [503, 503, 200]
    assert answers[0].text == "<h1>down</h1>"
    assert answers[0].headers["Content-Type"] == "text/html"
    order(sandbox, "status", endpoint="", path="/.well-known/", times=None)
    assert [sandbox.client.get(JWKS).status_code for _ in range(3)] == [500] * 3
    assert sandbox.client.get("/account/sign-in").status_code == 200
    assert sandbox.control("DELETE", "faults") == []
    assert sandbox.client.get(JWKS).status_code == 200


def test_every_kind_of_fault_can_be_ordered(sandbox):
    """A 429 with Retry-After, a 200 that breaks off, a late answer, and no whole answer at all."""
    order(sandbox, "rate_limit", retry_after=7)
    answer = sandbox.client.get(JWKS)
    assert refusal(answer) == (429, "RATE_LIMITED")
    assert answer.headers["Retry-After"] == "7"
    order(sandbox, "malformed")
    answer = sandbox.client.get(JWKS)
    assert answer.status_code == 200
    with pytest.raises(ValueError, match="Expecting"):
        answer.json()
    for kind in ("drop", "drop_midway"):
        order(sandbox, kind)
        with pytest.raises(httpx.RemoteProtocolError):
            sandbox.client.get(JWKS)
    order(sandbox, "delay", seconds=0.3)
    started = time.monotonic()
    assert sandbox.client.get(JWKS).json()["keys"]
    assert time.monotonic() - started >= 0.3


@pytest.mark.parametrize(("when", "status"), [("before", 200), ("after", 400)])
def test_a_lost_answer_may_have_spent_the_refresh_token(
    application, person, when, status
):
    """A drop *after* rotates the refresh token, whose answer nobody gets; one *before* does not."""
    tokens = person.tokens_for(application)
    order(application.sandbox, "drop", endpoint="token", when=when)
    with pytest.raises(httpx.RemoteProtocolError):
        application.refresh(tokens["refresh_token"])
    assert application.refresh(tokens["refresh_token"]).status_code == status


def test_request_log_shows_a_secret_presented_twice(sandbox, application, person):
    """Secrets are kept as digests, so that a repeat can be counted and nothing leaks."""
    tokens, code = person.tokens_for(application), person.make_code()
    sandbox.control("DELETE", "requests")
    for _ in range(2):
        application.refresh(tokens["refresh_token"])
        application.connect(code)
    log = sandbox.control("GET", "requests")
    told = [(entry["endpoint"], entry["status"]) for entry in log]
    assert told == [("token", 200), ("connect", 200), ("token", 400), ("connect", 400)]
    sent = {"refresh_token": tokens["refresh_token"], "connect_code": code}
    for name, secret in sent.items():
        digest = "sha256:" + hashlib.sha256(secret.encode()).hexdigest()[:16]
        assert [each["form"].get(name) for each in log].count(digest) == 2
    assert log[1]["form"]["scopes"] == CONNECT_SCOPES
    for secret in (code, application.client_secret, *map(str, tokens.values())):
        assert secret in ("Bearer", "3600", tokens["scope"]) or secret not in str(log)


#: Where, what is sent, and what the refusal says.
WRONG: list[tuple[str, dict[str, object], str]] = [
    ("clock", {"set": "2031-02-03T04:05:06"}, "set must be like"),
    ("clock", {}, "one of advance, offset, set and reset"),
    ("clock", {"advance": "60"}, "advance must be a number"),
    ("clock", {"advance": float("nan")}, "not JSON"),
    ("clock", {"advance": -(10**30)}, "out of the calendar"),
    ("clock", {"offset": 1e300}, "out of the calendar"),
    ("clock", {"set": "9999-12-31T23:59:59Z"}, "out of the calendar"),
    ("faults", {"kind": "delay", "seconds": 10**400}, "seconds must be"),
    ("faults", {"kind": "drop", "endpoint": "x"}, "no endpoint of that name"),
    ("faults", {"kind": "drop", "times": True}, "times must be a whole number or null"),
    ("faults", {"kind": "drop", "headers": []}, "headers must be an object"),
    ("faults", {}, "kind is missing"),
    ("switches", {"token_subject": "email"}, "token_subject cannot be 'email'"),
    ("switches", {"decoys": 3}, "decoys is no member"),
    ("applications", {"redirect_uris": ["a b"]}, "redirect_uris needs"),
    ("applications", {"redirect_uris": [1]}, "redirect_uris must be a list of strings"),
    ("applications", {"redirect_uris": ["x:/"], "client_secrets": {"test": 1}}, "client_sec"),
    ("applications/{app}/webhook", {"url": "ftp://shop.example/"}, "url: an address is like"),
    ("users", {"environment": "staging"}, "environment is one of live, test"),
    ("users", {"email": "{email}"}, "email or subject is taken"),
    ("users", {"date_of_birth": "1.2.90"}, "date_of_birth must be like 1990-01-31"),
    ("users", {"credential_seconds": 2**63}, "credential_seconds must be"),
    ("users/{user}/invalidate", {"bvn": "1"}, "bvn is no member; it takes none"),
    ("events", {"client_id": "{client}", "event_type": "x", "data": []}, "data must be an obj"),
    ("deliveries/release", {"client_id": "{client}", "backwards": 1}, "backwards must be true"),
]  # fmt: skip


@pytest.mark.parametrize(("path", "body", "named"), WRONG)
def test_a_wrong_member_is_named(shop, resident, path, body, named):
    """A control request that cannot be followed is a 400 that says which member is wrong."""
    ids = {"app": shop.app_id, "user": resident.user_id}
    content = json.dumps(body).replace("{client}", shop.client_id)
    content = content.replace("{email}", resident.account["email"])
    answer = shop.sandbox.client.post(f"/sandbox/{path.format(**ids)}", content=content)
    assert refusal(answer) == (400, "INVALID_REQUEST")
    assert named in answer.json()["error"]["message"]
