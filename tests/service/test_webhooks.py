"""A delivery's signature, bounds and content: one strict parse, and nothing of it in an error."""

import hashlib
import json
from datetime import UTC, datetime, timedelta

import pytest

from django_identity.exceptions import EventRefused
from django_identity.secrets import Secret
from django_identity.service.moments import NotAMoment, parse_moment
from django_identity.service.webhooks import is_signed, parse_event
from tests.deliveries import SECRET, signed

MEMBERS = {
    "event_type": "kyc.verified",
    "event_id": "evt_1",
    "timestamp": "2026-11-21T15:00:00Z",
    "data": {"user_id": "subject-1", "kyc_level": "level_2", "status": "verified"},
}


def body_with(**changes):
    return json.dumps({**MEMBERS, **changes}).encode()


def data_with(**changes):
    return body_with(data={**MEMBERS["data"], **changes})


def without(name):
    return json.dumps({key: MEMBERS[key] for key in MEMBERS if key != name}).encode()


def nested(depth):
    return data_with(x=json.loads("[" * depth + "]" * depth))


def raw(data):
    """A body whose ``data`` has the member ``x`` as this text."""
    members = b'{"user_id": "subject-1", "x": %s}' % data.encode()
    return body_with(data="@").replace(b'"@"', members)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"null",
        b"[]",
        b'"text"',
        b"{",
        b"\xff\xfe",
        b"\xef\xbb\xbf" + body_with(),
        body_with() + b"x",
        *map(without, MEMBERS),
        *[
            body_with(event_type=value)
            for value in (None, "", 1, "x" * 65, "a\0b", ["kyc"])
        ],
        *[
            body_with(event_id=value)
            for value in (None, "", "  ", 7, True, "x" * 256, "a\0", "\ud800")
        ],
        *[body_with(timestamp=value) for value in (None, "", 0, "now")],
        *[body_with(data=value) for value in (None, [], "x", 1)],
        *[data_with(user_id=value) for value in (1, "x" * 256, "a\0b", "a\nb", "..")],
        data_with(sub="subject-2"),
        *[data_with(note=value) for value in ("a\0b", "é\0", "\\\0", "\0\0")],
        data_with(note={"deep": ["\udc00"]}),
        data_with(**{"a\0b": 1}),
        nested(15),
        *map(
            raw,
            [
                "NaN",
                "-Infinity",
                "1e999",
                "01",
                "9" * 309,
                f"-{'9' * 400}",
                "9" * 5_000,
            ],
        ),
        raw('{"a": 1, "a": 2}'),
        body_with().replace(b'"event_id"', b'"event_type": "x", "event_id"'),
    ],
    ids=lambda body: str(body[-60:]),
)
def test_what_is_no_event_is_refused_by_its_digest_alone(body):
    """Types, lengths, times, depth, numbers, names: refused before any database could."""
    with pytest.raises(EventRefused) as refused:
        parse_event(body)
    assert hashlib.sha256(body).hexdigest() in refused.value.detail
    assert "subject-1" not in str(refused.value)
    assert "evt_1" not in str(refused.value)


def test_an_event_is_read_once():
    """Type, id, moment, subject, and what the type says."""
    event = parse_event(body_with())
    assert event.event_type == "kyc.verified"
    assert event.event_id == "evt_1"
    assert event.subject == "subject-1"
    assert event.occurred_at == datetime(2026, 11, 21, 15, tzinfo=UTC)
    assert "subject-1" not in repr(event)


def test_what_is_at_the_limits_is_read():
    """The longest id, the deepest nesting, great integers, letters of every script."""
    parse_event(body_with(event_id="x" * 255, event_type="y" * 64))
    parse_event(nested(14))
    parse_event(raw(f"[{'9' * 308}, -9223372036854775809, 1e308, 1e-400]"))
    for note in ("naïve 🎉", r"not a NUL: \u0000"):
        assert parse_event(data_with(note=note)).content["note"] == note


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("consent_revoked", "consent.revoked"),
        ("user_deleted", "data.deletion_requested"),
        ("something.new", "something.new"),
    ],
)
def test_two_types_have_other_names(name, known):
    """The spec's policy text calls them otherwise; unknown ones keep theirs."""
    assert parse_event(body_with(event_type=name)).event_type == known


@pytest.mark.parametrize(
    ("event_type", "data", "subject"),
    [
        # We do not know what the data of an unknown type may hold.
        ("news", {}, ""),
        ("news", {"user_id": 5}, ""),
        ("consent.revoked", {}, ""),
        ("consent.revoked", {"user": "a"}, ""),
        ("consent.revoked", {"user_id": None}, ""),
        ("consent.revoked", {"sub": "", "userId": None}, ""),
        *[
            ("consent.revoked", {"user_id": blank}, "")
            for blank in (" ", "\t\n", "\u3000")
        ],
        ("consent.revoked", {"user_id": " ", "sub": "subject-1"}, "subject-1"),
        *[
            ("consent.revoked", {"user_id": None, name: "subject-1"}, "subject-1")
            for name in ("user_id", "userId", "sub")
        ],
    ],
)
def test_the_subject_has_three_names_or_none(event_type, data, subject):
    """Null is absent. The intake keeps an event about nobody for the operators."""
    assert parse_event(body_with(event_type=event_type, data=data)).subject == subject


PATHS = ("data.user.user_id", "data.user.id", "user_id")
OWN_PATH = "data.customer.ref"


@pytest.mark.parametrize(
    ("members", "subject"),
    [
        ({"data": {"user": {"user_id": "a"}}}, "a"),
        ({"data": {"user": {"id": "b"}}}, "b"),
        ({"data": {}, "user_id": "c"}, "c"),
        # In the order of the setting.
        ({"data": {"user": {"id": "b", "user_id": "a"}}, "user_id": "c"}, "a"),
        ({"data": {"user": "a"}, "user_id": "c"}, "c"),
        ({"data": {"user": {"id": 7, "user_id": ["a"]}}, "user_id": "c"}, "c"),
        # What the specification shows comes first, under its three names.
        *[
            ({"data": {name: "x", "user": {"id": "b"}}, "user_id": "c"}, "x")
            for name in ("user_id", "userId", "sub")
        ],
        ({"data": {"user_id": None, "user": {"id": "b"}}}, "b"),
        # A claim's or a document's, unless the site says otherwise.
        ({"data": {"id": "d", "subject": "e"}}, ""),
        ({"data": {"user": {"id": "x" * 256}}}, ""),
        # A path that the site adds.
        ({"data": {"customer": {"ref": "f"}}}, "f"),
    ],
    ids=str,
)
def test_the_person_is_where_the_setting_says(members, subject):
    body = body_with(event_type="consent.revoked", **members)
    assert parse_event(body, subject_paths=(*PATHS, OWN_PATH)).subject == subject


def test_members_are_named_without_their_values_and_without_ids():
    """The name of a member can be an id, too."""
    customer = {"ref": "subject-1", "usr_8f3a": {"at": 1}}
    body = body_with(
        event_type="claim.revoked",
        data={"customer": customer, "list": [{"a": "b"}]},
    )
    event = parse_event(body, subject_paths=PATHS)
    assert event.members == ("data.customer.ref", "data.customer.?.at", "data.list")
    assert parse_event(body_with()).members == ()


@pytest.mark.parametrize(
    "body",
    [b'{"a": 1}', b'{"a":1}\n', b' {"a":1}', b'{"a":1,}', b""],
)
def test_the_bytes_as_sent_are_signed(body):
    """However the JSON is serialised: no other bytes have its signature."""
    secrets = [Secret("other"), Secret(SECRET)]
    for active in (secrets, secrets[::-1], secrets[1:]):
        assert is_signed(body, signature=signed(body), secrets=active)
    for bent in (body + b" ", b"\n" + body, b'{"a":1}'):
        assert not is_signed(bent, signature=signed(body), secrets=secrets)


SIGNATURES = {
    "none": "",
    "zeros": "0" * 64,
    "of another body": signed(b"body ").replace("a", "b"),
    "in capitals": signed(b"body").upper(),
    "with a space": signed(b"body") + " ",
    "cut off": signed(b"body")[:-1],
    "with a prefix": "sha256=" + signed(b"body"),
    "with another secret": signed(b"body", secret="another secret"),
    "not ASCII": "é" * 64,
    "a lone surrogate": "\udcff" * 64,
}


@pytest.mark.parametrize("signature", SIGNATURES.values(), ids=SIGNATURES)
def test_every_other_signature_is_refused(signature):
    """Exactly the lowercase hexadecimal digest over these bytes; no secrets open nothing."""
    assert not is_signed(b"body", signature=signature, secrets=[Secret(SECRET)])
    assert not is_signed(b"", signature=signed(b"", secret=""), secrets=[])


@pytest.mark.parametrize(
    "text",
    [
        "2026-11-21T15:00:00Z",
        "2026-11-21t15:00:00z",
        "2026-11-21 15:00:00",
        "2026-11-21T15:00:00.000000000Z",
        "2026-11-21T15:00:00,0+00:00",
        "2026-11-21T15:00:00-00:00",
        "2026-11-21T15:00Z",
        "2026-11-21T15Z",
        "20261121T150000Z",
        "20261121T1500+0000",
        "20261121T15+00",
        "2026-W47-6T15:00:00Z",
        "2026W476T150000Z",
        "2026-11-21T16:30:00+01:30",
    ],
)
def test_every_form_of_iso_8601_is_one_moment(text):
    """Extended and basic, with and without a zone, a fraction."""
    assert parse_moment(text) == datetime(2026, 11, 21, 15, tzinfo=UTC)


#: RFC 3339 §5.6 has a second 60, at the end of a UTC day, in any zone: it is the first of the next
#: minute. ISO 8601 has an hour 24.
ENDS_OF_A_YEAR = {
    "2026-12-31T23:59:60Z": 0.0,
    "2026-12-31t23:59:60.25z": 0.25,
    "2026-12-31 23:59:60": 0.0,
    "20261231T235960Z": 0.0,
    "20261231T155960,5-0800": 0.5,
    "2027-01-01T05:29:60+05:30": 0.0,
    "2026-12-31T24:00:00Z": 0.0,
    "2026-12-31t24:00:00z": 0.0,
    "2026-12-31 24:00": 0.0,
    "2026-12-31T24:00:00.000Z": 0.0,
    "2026-12-31T24Z": 0.0,
    "20261231T240000Z": 0.0,
    "20261231T2400,0+0000": 0.0,
    "2026-12-31T24:00:00+00:00": 0.0,
    "20261231T24-0000": 0.0,
}


@pytest.mark.parametrize(("text", "second"), ENDS_OF_A_YEAR.items())
def test_the_end_of_a_year_is_the_beginning_of_the_next(text, second):
    expected = datetime(2027, 1, 1, tzinfo=UTC) + timedelta(seconds=second)
    assert parse_event(body_with(timestamp=text)).occurred_at == expected


@pytest.mark.parametrize("text", ["9999-12-31T23:59:60Z", "9999-12-31T24:00Z"])
def test_the_end_of_the_calendar_is_a_moment(text):
    assert parse_moment(text) == datetime(9999, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2026-11-21",
        "15:00",
        "1763737200",
        "2026-13-01T00:00Z",
        "2026-02-30T00:00Z",
        "2026-366T00:00Z",
        "2026-11-21T25:00Z",
        "2026-11-21T24:01Z",
        "2026-11-21T24:00:01Z",
        "2026-11-21T24:00:00.1Z",
        "2026-11-21T24:60Z",
        "2026-11-21T2400000Z",
        "2026-02-30T24:00Z",
        "2026-11-21X15:00Z",
        "2026-11-21T15:60Z",
        "2026-11-21T1560Z",
        "2026-11-21T15:00:61Z",
        "2026-11-21T15:00:600Z",
        "202\uff16-11-21T15:00Z",
        "2026-11-21T15:00Z ",
    ],
)
def test_what_is_no_moment_is_refused(text):
    """A number, a day that does not exist, another script's digits, a date alone."""
    with pytest.raises(NotAMoment):
        parse_moment(text)
    day = datetime(2026, 11, 21, tzinfo=UTC)
    assert parse_moment("2026-11-21", takes_days=True) == day
