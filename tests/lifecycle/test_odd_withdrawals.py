"""What takes away is taken, whatever stands in the members of the event that nobody reads."""

import itertools
import json

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from django_identity.gates import claims_of
from django_identity.lifecycle.standing.standing import standing_of
from django_identity.models import Consent, LinkedIdentity, WebhookEvent
from tests.deliveries import post
from tests.example_counts import spread
from tests.factories import make_claim, make_identity, make_user

pytestmark = pytest.mark.django_db(transaction=True)

#: The text of a member ``x`` that strict JSON, or a database, does not take.
ODD = {
    "lone surrogate": rb'"\ud800"',
    "lone surrogate below": rb'{"a": ["\udfff"]}',
    "escaped NUL": rb'"a\u0000b"',
    "NUL in a name": rb'{"\u0000": 1}',
    "17 levels": b"[" * 17 + b"]" * 17,
    "200 levels": b'{"a":' * 200 + b"1" + b"}" * 200,
    "309 digits": b"9" * 309,
    "5000 digits": b"-" + b"9" * 5_000,
    "1e999": b"1e999",
    "NaN": b"NaN",
    "Infinity": b"[-Infinity]",
    "not UTF-8": b'"\xff"',
    "surrogate in UTF-8": b'"\xed\xa0\x80"',
    "control character": b'"a\nb"',
    "a repeated name": b'{"a": 1, "a": 2}',
}
ENDS = ["consent.revoked", "data.deletion_requested", "claim.revoked", "kyc.rejected"]


def body_of(event_type, *, inside=b"", outside=b""):
    """An event about subject-1 with these texts in its data, and beside it."""
    at = timezone.now().isoformat().encode()
    return (
        b'{"event_type": "%s", "event_id": "evt_odd", "timestamp": "%s", '
        b'"data": {"user_id": "subject-1"%s}%s}'
        % (event_type.encode(), at, inside, outside)
    )


def linked():
    scopes = ["claims:read", "kyc:read"]
    identity = make_identity(make_user(), account_made=False, scopes=scopes)
    for claim_type in ("age_over_18", "unique_human"):
        make_claim(identity, claim_type)


def is_taken_away(event_type):
    user = User.objects.get()
    if event_type == "claim.revoked":
        return claims_of(user) == {}
    if event_type == "kyc.rejected":
        return LinkedIdentity.objects.get().kyc_status == "rejected"
    return standing_of(user).barrier is not None


@pytest.mark.parametrize(
    ("event_type", "place", "odd"),
    spread(itertools.product(ENDS, ("inside", "outside"), ODD), every=4),
)
def test_an_odd_member_holds_up_no_withdrawal(event_type, odd, place):
    """Only type, id, time and person are demanded of it."""
    linked()
    assert (
        post(body_of(event_type, **{place: b', "x": ' + ODD[odd]})).status_code == 200
    )
    assert is_taken_away(event_type)


@pytest.mark.parametrize("event_type", ENDS)
def test_a_mark_of_the_byte_order_holds_up_no_withdrawal(event_type):
    linked()
    assert post(b"\xef\xbb\xbf" + body_of(event_type)).status_code == 200
    assert is_taken_away(event_type)


@pytest.mark.parametrize("event_type", ENDS)
def test_a_withdrawal_in_other_letters_is_one(event_type):
    linked()
    assert post(body_of(event_type.upper())).status_code == 200
    assert is_taken_away(event_type)


@pytest.mark.parametrize(
    ("event_type", "odd"),
    spread(itertools.product(("kyc.verified", "claim.issued", "news"), ODD), every=2),
)
def test_what_takes_nothing_away_is_read_strictly(event_type, odd):
    linked()
    assert post(body_of(event_type, inside=b', "x": ' + ODD[odd])).status_code == 400
    assert not WebhookEvent.objects.exists()


#: What an event says in a way that cannot be read, and the claims that stand after it.
UNREADABLE = [
    *(
        ("claim.revoked", {"claim_type": odd}, [])
        for odd in (
            ["age_over_18"],
            {"a": 1},
            7,
            True,
            "x" * 129,
            " ",
            "\n",
            "a\u0000",
            "\ud800",
            None,
        )
    ),
    *(
        (
            "claim.revoked",
            {"claim_type": "age_over_18", "provider": odd},
            ["unique_human"],
        )
        for odd in (["KYC"], 7, "x" * 129, "\u0000")
    ),
    *(
        ("kyc.rejected", {"status": odd}, ["age_over_18", "unique_human"])
        for odd in (7, ["verified"], {}, "x" * 999, "\ud800")
    ),
]


@pytest.mark.parametrize(("event_type", "odd", "stay"), UNREADABLE, ids=ascii)
def test_what_cannot_be_read_is_not_said(event_type, odd, stay):
    """So all claims are revoked, or one whoever made it; a rejection is one whatever it says."""
    linked()
    inside = b", " + json.dumps(odd)[1:-1].encode()
    assert post(body_of(event_type, inside=inside)).status_code == 200
    assert sorted(claims_of(User.objects.get())) == stay
    assert is_taken_away(event_type) is (event_type == "kyc.rejected" or not stay)


@pytest.mark.parametrize("data", [b"null", b"[]", b'"subject-1"', b"7"])
def test_the_data_may_be_anything_if_the_person_is_elsewhere(settings, data):
    paths = {"EVENT_SUBJECT_PATHS": ["user_id"]}
    settings.DJANGO_IDENTITY = {**settings.DJANGO_IDENTITY, **paths}
    linked()
    body = body_of("consent.revoked", outside=b', "user_id": "subject-1"')
    body = body.replace(b'{"user_id": "subject-1"}', data, 1)
    assert post(body).status_code == 200
    assert LinkedIdentity.objects.get().consent == Consent.REVOKED


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (body_of("consent.revoked", inside=b', "user_id": "subject-2"'), 422),
        (body_of("consent.revoked", inside=b', "sub": "subject-2"'), 400),
        (body_of("consent.revoked").replace(b"subject-1", rb"subject-\ud800"), 422),
        (body_of("consent.revoked").replace(b"subject-1", rb"subject-\u0000"), 422),
        (body_of("consent.revoked").replace(b"subject-1", b"subject-\xff"), 422),
        (body_of("consent.revoked").replace(b"evt_odd", rb"\ud800"), 400),
        (body_of("consent.revoked", outside=b', "event_type": "news"'), 400),
        (
            body_of("consent.revoked", outside=b', "timestamp": "2020-01-01T00:00Z"'),
            400,
        ),
        (body_of("consent.revoked") + b"x", 400),
        (
            body_of(
                "consent.revoked",
                outside=b', "x": ' + b'{"a":' * 900 + b"1" + b"}" * 900,
            ).replace(b"subject-1", b""),
            422,
        ),
        (b"[" * 100_000 + b"]" * 100_000, 400),
        (
            body_of(
                "consent.revoked",
                inside=b', "x": ' + b"[" * 100_000 + b"]" * 100_000,
            ),
            400,
        ),
    ],
    ids=[
        "two persons by one name",
        "two persons",
        "a surrogate in the person",
        "a NUL in it",
        "octets in it",
        "a surrogate in the id",
        "two types",
        "two times",
        "something behind",
        "deep, and nobody",
        "too deep",
        "too deep inside",
    ],
)
def test_what_is_demanded_of_a_withdrawal(body, status):
    """Each once, and readable: nobody knows else whom or when it is about."""
    linked()
    assert post(body).status_code == status
    assert LinkedIdentity.objects.get().consent == Consent.GRANTED


def test_what_the_database_cannot_hold_is_stored_as_nothing(handled):
    """A handler of the site sees the rest."""
    handled("claim.revoked")
    linked()
    odd = b"".join(b', "x%d": %s' % each for each in enumerate(ODD.values()))
    inside = odd + b', "claim_type": "age_over_18", "note": "kept", "n": 5'
    assert post(body_of("claim.revoked", inside=inside)).status_code == 200
    kept = {
        "user_id": "subject-1",
        "claim_type": "age_over_18",
        "note": "kept",
        "n": 5,
    }
    payload = WebhookEvent.objects.get().payload
    assert payload.items() >= kept.items()
    assert payload.keys() - kept.keys() <= {"x13", "x14"}
