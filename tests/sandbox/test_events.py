"""What causes which event, who hears of it, and what it says."""

import re
import time
from datetime import UTC, datetime

import pytest

from tests.sandbox.connect_driver import BOTH_SCOPES, make_code, redeem, refusal
from tests.sandbox.driver import ALL_SCOPES, Application, Person, Pkce, Sandbox, bearer
from tests.sandbox.receiver import SECRET, Receiver, until

ALL_CLAIMS = ["kyc_verified", "age_over_18", "country_resident", "unique_human"]


@pytest.fixture
def unverified(sandbox: Sandbox, hearing: Application, receiver: Receiver) -> Person:
    """A person who consented before any verification."""
    person = Person(sandbox)
    person.consent_to(hearing)
    receiver.wait_for(1)
    return person


@pytest.fixture
def known(hearing: Application, person: Person, receiver: Receiver) -> Person:
    """A verified person who consented."""
    person.consent_to(hearing)
    receiver.wait_for(1)
    return person


def test_approval_on_the_consent_screen(
    hearing: Application, person: Person, receiver: Receiver
) -> None:
    """consent.granted names the person and the scopes, and comes once."""
    person.tokens_for(hearing)
    (event,) = receiver.wait_for(1)
    assert event["event_type"] == "consent.granted"
    assert event["data"] == {"user_id": person.user_id, "scopes": ALL_SCOPES.split()}


def test_redemption_of_a_connect_code(
    hearing: Application, person: Person, receiver: Receiver
) -> None:
    """A Connect redemption grants consent as well; a refused one tells nothing."""
    assert redeem(hearing, make_code(person)).status_code == 200
    assert redeem(hearing, "CNX-AAAA-AAAA").status_code == 400
    (event,) = receiver.wait_for(1)
    assert event["event_type"] == "consent.granted"
    assert event["data"] == {"user_id": person.user_id, "scopes": BOTH_SCOPES}
    assert len(hearing.deliveries()) == 1


def test_denial_tells_nothing(hearing: Application, person: Person, receiver: Receiver) -> None:
    """A request that was denied or cannot be used sends no event."""
    page = person.sign_in(person.open(hearing.authorization_url(Pkce())))
    person.submit(page, deny="Deny")
    assert hearing.deliveries() == []


def test_verification(unverified: Person, receiver: Receiver) -> None:
    """kyc.verified has exactly the members the specification shows; each claim is told."""
    unverified.cause("verify", bvn="22222222222")
    verified, *issued = receiver.wait_for(6)[1:]
    assert verified["event_type"] == "kyc.verified"
    assert verified["data"] == {
        "user_id": unverified.user_id,
        "kyc_level": "level_2",
        "status": "verified",
        "provider": "Sandbox KYC",
    }
    assert {each["event_type"] for each in issued} == {"claim.issued"}
    assert [each["data"]["claim_type"] for each in issued] == ALL_CLAIMS
    assert issued[0]["data"]["provider"] == "Sandbox KYC"


def test_rejection(known: Person, receiver: Receiver) -> None:
    """kyc.rejected, and with it every claim of the earlier verification is revoked."""
    known.cause("verify", bvn="11111111111")
    rejected, *revoked = receiver.wait_for(6)[1:]
    assert rejected["event_type"] == "kyc.rejected"
    assert (rejected["data"]["status"], rejected["data"]["kyc_level"]) == ("rejected", "level_1")
    assert {each["event_type"] for each in revoked} == {"claim.revoked"}
    assert [each["data"]["claim_type"] for each in revoked] == ALL_CLAIMS


def test_unavailable_provider_tells_nothing(unverified: Person, hearing: Application) -> None:
    """Where nothing changed, nothing is told."""
    unverified.cause("verify", bvn="00000000000")
    assert len(hearing.deliveries()) == 1


def test_invalidated_verification(known: Person, sandbox: Sandbox, receiver: Receiver) -> None:
    """Claims are revoked by themselves when the verification underneath is taken back."""
    known.cause("invalidate")
    revoked = receiver.wait_for(5)[1:]
    assert [each["data"]["claim_type"] for each in revoked] == ALL_CLAIMS
    assert sandbox.control("GET", f"users/{known.user_id}")["kyc_status"] == "unverified"


def test_claim_revoked_and_issued_again(known: Person, receiver: Receiver) -> None:
    """Both directions are told, each once, with the claim and its provider."""
    known.cause("claims/age_over_18/revoke")
    known.cause("claims/age_over_18/issue")
    revoked, issued = receiver.wait_for(3)[1:]
    about = {
        "user_id": known.user_id,
        "claim_type": "age_over_18",
        "provider": "Sandbox Identity",
    }
    assert (revoked["event_type"], revoked["data"]) == ("claim.revoked", about)
    assert (issued["event_type"], issued["data"]) == ("claim.issued", about)


def test_consent_revoked(known: Person, hearing: Application, receiver: Receiver) -> None:
    """The application hears of it once, and of nothing that happens afterwards."""
    known.cause(f"consents/{hearing.client_id}/revoke")
    known.cause("claims/age_over_18/revoke")
    assert receiver.wait_for(2)[1]["event_type"] == "consent.revoked"
    assert len(hearing.deliveries()) == 2


def test_deletion_reaches_everyone_who_ever_had_consent(
    sandbox: Sandbox, known: Person, hearing: Application, receiver: Receiver
) -> None:
    """An application whose consent has ended is told as well; one that had none is not."""
    tokens = known.tokens_for(hearing)
    with Receiver() as second, Receiver() as third:
        former, stranger = Application(sandbox), Application(sandbox)
        former.receive_at(second.url)
        stranger.receive_at(third.url)
        known.consent_to(former)
        known.cause(f"consents/{former.client_id}/revoke")
        second.wait_for(2)
        assert known.cause("deletion")["deletion_requested"]
        assert second.wait_for(3)[2]["event_type"] == "data.deletion_requested"
        until(lambda: receiver.types[-1] == "data.deletion_requested")
        assert receiver.events[-1]["data"] == {"user_id": known.user_id}
        assert receiver.events[-1]["event_id"] != second.events[-1]["event_id"]
        assert third.requests == []
    kyc = sandbox.client.get("/api/v1/users/me/kyc", headers=bearer(tokens))
    assert kyc.status_code == 401
    assert hearing.refresh(tokens["refresh_token"]).status_code == 400


def test_deletion_voids_connect_codes(known: Person, hearing: Application) -> None:
    """A code made before shares nothing afterwards."""
    code = make_code(known)
    known.cause("deletion")
    assert refusal(redeem(hearing, code)) == (400, "INVALID_CONNECT_CODE")


def test_deletion_is_asked_once(known: Person, hearing: Application) -> None:
    """Asking again tells nobody again."""
    known.cause("deletion")
    known.cause("deletion")
    types = [each["event_type"] for each in hearing.deliveries()]
    assert types == ["consent.granted", "data.deletion_requested"]


def test_other_people_and_other_modes_are_not_told(
    sandbox: Sandbox, hearing: Application, receiver: Receiver
) -> None:
    """Events go to the credential set that the person consented to, and nowhere else."""
    stranger = Person(sandbox, verified=True)
    stranger.cause("claims/age_over_18/revoke")
    hearing.use("live")
    hearing.receive_at(receiver.url)
    live = Person(sandbox, verified=True, environment="live")
    live.consent_to(hearing)
    receiver.wait_for(1)
    assert [each["user_id"] for each in sandbox.control("GET", "deliveries")] == [live.user_id]


def test_event_comes_at_once(known: Person, receiver: Receiver) -> None:
    """It arrives well within the second in which its cause happened."""
    latencies = []
    for _ in range(5):
        known.cause("claims/unique_human/issue")
        answered = time.monotonic()
        receiver.wait_for(len(latencies) + 2)
        latencies.append(receiver.requests[-1].at - answered)
    assert sorted(latencies)[2] < 0.05


def test_ids_and_times(sandbox: Sandbox, known: Person, receiver: Receiver) -> None:
    """Each event has an id of its own and the time of the sandbox's clock, in UTC."""
    sandbox.control("POST", "clock", set="2031-02-03T04:05:06Z")
    known.cause("invalidate")
    later = receiver.wait_for(5)[1:]
    assert len({each["event_id"] for each in receiver.events}) == 5
    assert all(each["timestamp"].startswith("2031-02-03T04:05:0") for each in later)
    assert all(each["timestamp"].endswith("Z") for each in later)


@pytest.mark.parametrize(
    ("form", "shape"),
    [
        ("milliseconds", r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"),
        ("seconds", r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"),
        ("offset", r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}\+00:00"),
    ],
)
def test_time_takes_each_form(
    sandbox: Sandbox, known: Person, receiver: Receiver, form: str, shape: str
) -> None:
    """Every form names the same moment in UTC."""
    sandbox.control("POST", "switches", event_timestamp=form)
    known.cause("claims/age_over_18/revoke")
    timestamp = receiver.wait_for(2)[1]["timestamp"]
    assert re.fullmatch(shape, timestamp)
    assert abs((datetime.fromisoformat(timestamp) - datetime.now(UTC)).total_seconds()) < 5


def test_events_can_say_no_more_than_who(
    sandbox: Sandbox, unverified: Person, receiver: Receiver
) -> None:
    """With the details off all events but kyc.verified carry the user id alone."""
    sandbox.control("POST", "switches", event_details=False)
    unverified.cause("verify", bvn="22222222222")
    verified, *issued = receiver.wait_for(6)[1:]
    assert set(verified["data"]) == {"user_id", "kyc_level", "status", "provider"}
    assert [each["data"] for each in issued] == [{"user_id": unverified.user_id}] * 4


@pytest.mark.parametrize("form", ["compact", "indented"])
def test_signature_covers_the_bytes_as_sent(
    sandbox: Sandbox, known: Person, receiver: Receiver, form: str
) -> None:
    """However the JSON is written, the signature is over what arrives."""
    sandbox.control("POST", "switches", event_json=form)
    known.cause("claims/age_over_18/revoke")
    receiver.wait_for(2)
    request = receiver.requests[1]
    assert (b"\n  " in request.body) is (form == "indented")
    assert request.is_signed_with(SECRET)
    assert not request.is_signed_with("another")
    assert request.headers["content-type"] == "application/json"


def test_event_that_nothing_caused(
    hearing: Application, sandbox: Sandbox, receiver: Receiver
) -> None:
    """The control API sends any type, id, time and data, for a receiver's hostile cases."""
    sandbox.control(
        "POST",
        "events",
        client_id=hearing.client_id,
        event_type="claim.exploded",
        event_id="evt_é ",
        timestamp="yesterday",
        data={"deep": [None]},
    )
    (event,) = receiver.wait_for(1)
    assert event == {
        "event_type": "claim.exploded",
        "event_id": "evt_é ",
        "timestamp": "yesterday",
        "data": {"deep": [None]},
    }
    assert receiver.requests[0].is_signed_with(SECRET)
