"""What a person does on the account pages is told to the applications that have their consent."""

import pytest

from tests.sandbox.driver import Application, Person, Sandbox
from tests.sandbox.receiver import SECRET, Receiver

CLAIMS = ["kyc_verified", "age_over_18", "country_resident", "unique_human"]

Told = list[tuple[str, str | None]]


def told_after(receiver: Receiver, before: int, count: int) -> Told:
    """Type and claim of the ``count`` events that came, each of them signed over its bytes."""
    events = receiver.wait_for(before + count)[before:]
    assert all(each.is_signed_with(SECRET) for each in receiver.requests)
    return [(each["event_type"], each["data"].get("claim_type")) for each in events]


@pytest.mark.parametrize(
    ("path", "action", "fields", "told"),
    [
        (
            "/account/verify",
            "",
            {"bvn": "22222222222"},
            [("kyc.verified", None), *(("claim.issued", claim) for claim in CLAIMS)],
        ),
        (
            "/account/verify",
            "",
            {"bvn": "11111111111"},
            [("kyc.rejected", None), *(("claim.revoked", claim) for claim in CLAIMS)],
        ),
        (
            "/account/",
            "/claims/age_over_18/revoke",
            {},
            [("claim.revoked", "age_over_18")],
        ),
        ("/account/", "/consents/{client_id}/revoke", {}, [("consent.revoked", None)]),
        ("/account/delete", "", {"delete": "1"}, [("data.deletion_requested", None)]),
    ],
    ids=["verify", "reject", "revoke claim", "revoke consent", "ask for deletion"],
)
def test_each_page_tells(
    hearing: Application,
    person: Person,
    receiver: Receiver,
    path: str,
    action: str,
    fields: dict[str, str],
    told: Told,
) -> None:
    """Pressing the button sends the events, in this order and no other."""
    person.consent_to(hearing)
    receiver.wait_for(1)
    person.sign_in()
    target = action.format(client_id=hearing.client_id)
    person.submit(person.open(path), target, **fields)
    assert told_after(receiver, 1, len(told)) == told
    assert len(hearing.deliveries()) == 1 + len(told)
    assert {each["data"]["user_id"] for each in receiver.events} == {person.user_id}


def test_claim_issued_again_is_told(
    hearing: Application, person: Person, receiver: Receiver
) -> None:
    """So is what a person gives back."""
    person.consent_to(hearing)
    person.cause("claims/unique_human/revoke")
    receiver.wait_for(2)
    person.sign_in()
    person.submit(person.open("/account/"), "/account/claims/unique_human/issue")
    assert told_after(receiver, 2, 1) == [("claim.issued", "unique_human")]


@pytest.mark.parametrize("bvn", ["00000000000", "123"])
def test_verification_that_changes_nothing_tells_nothing(
    sandbox: Sandbox, hearing: Application, receiver: Receiver, bvn: str
) -> None:
    """Neither a provider that is away nor a slip of the pen is an event."""
    person = Person(sandbox)
    person.consent_to(hearing)
    receiver.wait_for(1)
    person.sign_in()
    person.submit(person.open("/account/verify"), bvn=bvn)
    assert len(hearing.deliveries()) == 1
