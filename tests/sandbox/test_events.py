"""What causes which event, who hears of it, what it says, and how it is delivered."""

import json
import re
from datetime import datetime
from typing import Any

import pytest

from tests.sandbox.driver import (
    ALL_SCOPES,
    CONNECT_SCOPES,
    Application,
    Person,
    refusal,
)
from tests.sandbox.receiver import SECRET, Receiver, until

ALL_CLAIMS = ["kyc_verified", "age_over_18", "country_resident", "unique_human"]
PAUSES = [1, 2, 5, 15, 60, 300, 1800, 7200]


@pytest.fixture
def known(hearing: Application, person: Person, receiver: Receiver) -> Person:
    """A verified person who consented."""
    person.consent_to(hearing)
    receiver.wait_for(1)
    return person


def types_of(application: Application) -> list[str]:
    """The types of all events for ``application``, delivered or not."""
    return [each["event_type"] for each in application.deliveries()]


def send(application: Application, **event: object) -> Any:
    """Let the sandbox send an event that nothing caused."""
    members = {"client_id": application.client_id, "event_type": "kyc.verified"}
    return application.sandbox.control("POST", "events", **members | event)


def settled(application: Application, *, attempts: int = 1) -> dict[str, Any]:
    """Return the one delivery once so many attempts are over, or no further one will follow."""
    shown: list[dict[str, Any]] = []

    def is_over() -> bool:
        shown[:] = application.deliveries()[:1]
        return len(shown[0]["attempts"]) >= attempts or shown[0]["state"] != "waiting"

    until(is_over)
    assert len(shown[0]["attempts"]) >= attempts, shown[0]["state"]
    return shown[0]


# What causes which event, and who hears of it


def test_an_approval_is_told_as_a_consent(hearing, person, receiver):
    """By the screen or by a code, with all scopes that are granted now. A refusal tells nothing."""
    person.submit(person.consent_screen(hearing), deny="Deny")
    assert hearing.connect("CNX-AAAA-AAAA").status_code == 400
    assert hearing.deliveries() == []
    person.tokens_for(hearing)
    assert hearing.connect(person.make_code()).status_code == 200
    events = receiver.wait_for(2)
    assert [each["event_type"] for each in events] == ["consent.granted"] * 2
    scopes = ALL_SCOPES.split()
    assert events[0]["data"] == {"user_id": person.user_id, "scopes": scopes}
    assert events[1]["data"]["scopes"] == [*scopes, *CONNECT_SCOPES]
    assert len(hearing.deliveries()) == 2


def test_a_verification_and_its_end_are_told_by_all_seven_types(hearing, receiver):
    """kyc.verified has the members that the specification shows; each claim has an event."""
    unverified = Person(hearing.sandbox)
    unverified.consent_to(hearing)
    # Where nothing changed, nothing is told.
    unverified.cause("verify", bvn="00000000000")
    unverified.cause("verify", bvn="22222222222")
    unverified.cause("verify", bvn="11111111111")
    unverified.cause(f"consents/{hearing.client_id}/revoke")
    # The others carry the user id alone then.
    hearing.sandbox.switch(event_details=False)
    unverified.cause("deletion")

    told = receiver.wait_for(13)[1:]
    assert receiver.types == [
        "consent.granted",
        "kyc.verified",
        *["claim.issued"] * 4,
        "kyc.rejected",
        *["claim.revoked"] * 4,
        "consent.revoked",
        "data.deletion_requested",
    ]
    about = {"kyc_level": "level_2", "status": "verified", "provider": "Sandbox KYC"}
    alone = {"user_id": unverified.user_id}
    assert told[0]["data"] == alone | about
    claims = [each["data"]["claim_type"] for each in (*told[1:5], *told[6:10])]
    assert claims == ALL_CLAIMS * 2
    assert told[5]["data"].items() >= {("status", "rejected"), ("kyc_level", "level_1")}
    assert told[-1]["data"] == alone


#: The switch, and how it names somebody.
NAMED: dict[str, dict[str, Any]] = {
    "data.user_id": {"data": {"user_id": "X"}},
    "data.userId": {"data": {"userId": "X"}},
    "data.sub": {"data": {"sub": "X"}},
    "data.subject": {"data": {"subject": "X"}},
    "data.user.user_id": {"data": {"user": {"user_id": "X"}}},
    "data.user.id": {"data": {"user": {"id": "X"}}},
    "data.id": {"data": {"id": "X"}},
    "user_id": {"user_id": "X", "data": {}},
}


def test_events_name_their_person_in_several_ways(hearing, person, receiver):
    """A switch chooses the member, but for kyc.verified, which the specification shows."""
    for place, named in NAMED.items():
        hearing.sandbox.switch(event_subject=place, event_details=False)
        receiver.requests.clear()
        send(hearing, event_type="claim.revoked", user_id=person.user_id)
        send(hearing, event_type="kyc.verified", user_id=person.user_id)
        sent, verified = receiver.wait_for(2)
        expected = json.loads(json.dumps(named).replace("X", person.user_id))
        assert {name: sent[name] for name in expected} == expected, place
        assert sent.keys() == {"event_type", "event_id", "timestamp", *expected}
        assert verified["data"]["user_id"] == person.user_id


def test_deletion_reaches_everyone_who_ever_had_consent(sandbox, known, hearing):
    """An application whose consent has ended is told as well; one that had none is not."""
    tokens, code = known.tokens_for(hearing), known.make_code()
    former, stranger = Application(sandbox), Application(sandbox)
    for each in (former, stranger):
        each.receive_at("http://127.0.0.1:9/")
    known.consent_to(former)
    known.cause(f"consents/{former.client_id}/revoke")
    for _ in range(2):
        assert known.cause("deletion")["deletion_requested"]

    assert types_of(hearing) == ["consent.granted"] * 2 + ["data.deletion_requested"]
    ended = ["consent.granted", "consent.revoked", "data.deletion_requested"]
    assert types_of(former) == ended
    assert types_of(stranger) == []
    told, heard = hearing.deliveries()[-1], former.deliveries()[-1]
    assert json.loads(told["body"])["data"] == {"user_id": known.user_id}
    assert told["event_id"] != heard["event_id"]
    assert known.read(tokens, "kyc").status_code == 401
    assert hearing.refresh(tokens["refresh_token"]).status_code == 400
    assert refusal(hearing.connect(code)) == (400, "INVALID_CONNECT_CODE")


HEARD = {
    "profile:read": [],
    "kyc:read": ["kyc"],
    "claims:read": ["claim"],
    "kyc:status": ["kyc"],
    "kyc:read claims:read": ["claim", "kyc"],
}


@pytest.mark.parametrize("scopes", HEARD)
def test_an_application_is_told_what_its_scopes_cover(hearing, person, scopes):
    """KYC and claims to those that may read them; a consent and its end to all."""
    person.consent_to(hearing, *scopes.split())
    person.cause("verify", bvn="11111111111")
    person.cause("verify", bvn="22222222222")
    person.cause(f"consents/{hearing.client_id}/revoke")
    # Of which nothing is told any more.
    person.cause("invalidate")
    first, *told, last = types_of(hearing)
    assert first == "consent.granted"
    assert last == "consent.revoked"
    assert sorted({each.split(".")[0] for each in told}) == HEARD[scopes]


def test_each_event_has_its_own_id_and_the_sandboxs_time(hearing, person, receiver):
    """The time is that of the sandbox's clock in UTC, in the form that a switch chooses."""
    hearing.sandbox.control("POST", "clock", set="2031-02-03T04:05:06Z")
    for form in ("milliseconds", "seconds", "offset"):
        hearing.sandbox.switch(event_timestamp=form)
        send(hearing, user_id=person.user_id)
    events = receiver.wait_for(3)
    assert len({each["event_id"] for each in events}) == 3
    for event in events:
        assert event.keys() == {"event_type", "event_id", "timestamp", "data"}
    shapes = (r"\d\.\d{3}Z", r"\dZ", r"\d\.\d{6}\+00:00")
    for event, shape in zip(events, shapes, strict=True):
        assert re.fullmatch(rf"2031-02-03T04:\d\d:\d{shape}", event["timestamp"])


# How it is delivered


def test_an_event_that_nothing_caused_can_be_sent(hearing, receiver):
    """Any type, id, time and data, for a receiver's hostile cases; the spec's other names too."""
    odd = {"event_id": "evt_é ", "timestamp": "yesterday", "data": {"deep": [None]}}
    send(hearing, event_type="user_deleted", **odd)
    (event,) = receiver.wait_for(1)
    assert event == {"event_type": "user_deleted", **odd}
    assert receiver.requests[0].is_signed_with(SECRET)
    assert not receiver.requests[0].is_signed_with("another")
    assert receiver.requests[0].headers["content-type"] == "application/json"


@pytest.mark.parametrize("status", [202, 204, 299, 301, 307, 400, 410, 503])
def test_any_2xx_acknowledges_and_nothing_else_does(hearing, receiver, status):
    """The delivery shows what was sent and what came back, and is over.

    Anything else is retried with the same bytes, and no redirect is followed.
    """
    receiver.answers, receiver.location = [status], receiver.url
    receiver.body = b"" if status == 204 else b'{"received": true}'
    send(hearing)
    delivery = settled(hearing)
    if status > 299:
        hearing.sandbox.advance(2)
        delivery = settled(hearing, attempts=2)
        assert receiver.requests[0].body == receiver.requests[1].body
    assert delivery["state"] == "delivered"
    assert delivery["next_attempt_at"] is None
    attempt = delivery["attempts"][0]
    problem = "A redirect is not followed." if status in (301, 307) else ""
    assert attempt["status"] == status
    assert attempt["problem"] == problem
    assert attempt["excerpt"] == receiver.body.decode()
    assert attempt["url"] == receiver.url
    assert delivery["body"].encode() == receiver.requests[0].body
    signature = attempt["headers"]["x-webhook-signature"]

    assert signature == receiver.requests[0].headers["x-webhook-signature"]


def test_a_delivery_fails_after_nine_attempts_and_can_be_sent_again(
    sandbox,
    hearing,
    receiver,
):
    """Nine attempts at growing distances, then failed; one that is sent again starts anew."""
    receiver.answers = [500] * 10
    made = send(hearing)
    for attempts in range(1, 9):
        delivery = settled(hearing, attempts=attempts)
        assert delivery["state"] == "waiting"
        next_at = datetime.fromisoformat(delivery["next_attempt_at"])
        pause = next_at - datetime.fromisoformat(delivery["attempts"][-1]["sent_at"])
        # On a busy machine the first pauses, of seconds, may be over already.
        assert round(pause.total_seconds()) == PAUSES[len(delivery["attempts"]) - 1]
        sandbox.advance(7201)
    assert settled(hearing, attempts=9)["state"] == "failed"
    sandbox.advance(100_000)
    assert len(receiver.requests) == 9
    hearing.receive_at(receiver.url, secret="whsec_new")
    sandbox.control("POST", f"deliveries/{made['id']}/send")
    assert settled(hearing, attempts=10)["state"] == "waiting"
    sandbox.advance(2)

    assert settled(hearing, attempts=11)["state"] == "delivered"
    assert receiver.requests[0].is_signed_with(SECRET)
    assert receiver.requests[-1].is_signed_with("whsec_new")


def test_an_address_that_nobody_can_have_holds_up_no_other(sandbox, hearing, receiver):
    """The system's resolver refuses the name before it asks anybody."""
    mistyped = Application(sandbox)
    mistyped.receive_at("http://shop..example/")
    send(mistyped)
    send(hearing)
    assert "label empty" in settled(mistyped)["attempts"][0]["problem"]
    assert settled(hearing)["state"] == "delivered"


def test_refused_connection_is_attempted_again(sandbox, application):
    """A receiver that is down hears of it when it is back."""
    application.receive_at("http://127.0.0.1:9/")
    send(application)
    attempt = settled(application)["attempts"][0]
    assert attempt["status"] is None
    assert "refused" in attempt["problem"]
    application.receive_at("")
    sandbox.advance(2)
    until(lambda: "no webhook" in settled(application)["attempts"][-1]["problem"])
    with Receiver() as receiver:
        application.receive_at(receiver.url)
        sandbox.advance(100)
        until(lambda: settled(application)["state"] == "delivered")
        assert len(receiver.requests) == 1


def test_held_deliveries_leave_in_the_order_asked_for(sandbox, hearing, receiver):
    named = {"client_id": hearing.client_id}
    for backwards in (False, True):
        receiver.requests.clear()
        sandbox.control("POST", "deliveries/hold", **named)
        ids = [send(hearing)["event_id"] for _ in range(4)]
        assert {each["state"] for each in hearing.deliveries()[-4:]} == {"held"}
        assert receiver.requests == []
        how = named | {"backwards": backwards}
        assert sandbox.control("POST", "deliveries/release", **how)["released"] == 4
        came = [each["event_id"] for each in receiver.wait_for(4)]
        assert came == (ids[::-1] if backwards else ids)
    assert send(hearing)["state"] == "waiting"
