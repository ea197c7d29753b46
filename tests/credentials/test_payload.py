"""The signed payload: rows 25 to 34 of the checklist."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest

from django_identity.credentials import RejectionReason
from tests.credentials.issuer import (
    ABSENT,
    AUDIENCE,
    CLAIMS,
    DISCLOSURES,
    EPOCH_NOW,
    ISSUER,
    NOW,
    SUBJECT,
    check,
    credential,
    digest,
    disclose,
    join,
    payload,
    rejection,
    token,
)
from tests.credentials.json_texts import NOT_STRICT

R = RejectionReason


@pytest.mark.parametrize("text", NOT_STRICT.values(), ids=NOT_STRICT)
def test_json(text):
    """Rows 7 to 10: the payload is one object of strict JSON in UTF-8, 32 levels deep at most."""
    reason = R.LIMITS if len(text) > 96 * 1024 else R.PAYLOAD_JSON
    assert rejection(join(token(body=text), [])) is reason


@pytest.mark.parametrize("opening", ["[", '{"a":'])
def test_depth_that_the_parser_would_refuse(opening):
    """Row 9: nesting beyond what Python's parser can follow is a rejection as well."""
    body = json.dumps(payload())[:-1] + ',"x":' + opening * 15_000
    assert rejection(join(token(body=body), [])) is R.PAYLOAD_JSON


def test_depth_of_32_is_fine():
    """Row 9: up to 32 levels pass."""
    body = json.dumps(payload())[:-1] + ',"x":' + "[" * 31 + "]" * 31 + "}"
    assert check(join(token(body=body), DISCLOSURES)).claims == CLAIMS


@pytest.mark.parametrize(("opening", "ending"), [("[", "]"), ('{"a":', "}")])
def test_long_nesting(opening, ending):
    """Row 9: what is nested deeper than 32 levels is refused, closed properly or not."""
    body = json.dumps(payload())[:-1] + ',"x":' + opening * 900 + "1" + ending * 900 + "}"
    assert rejection(join(token(body=body), DISCLOSURES)) is R.PAYLOAD_JSON


@pytest.mark.parametrize("indent", [None, 0, 4])
def test_white_space(indent):
    """Row 10: white space around and inside is fine."""
    body = f"\n {json.dumps(payload(), indent=indent)}\t\r\n"
    assert check(join(token(body=body), DISCLOSURES)).claims == CLAIMS


@pytest.mark.parametrize("name", ["iss", "aud", "environment", "sub", "exp"])
def test_required_members_are_signed(name):
    """Row 25: a disclosure cannot supply what the payload left out."""
    value = payload()[name]
    supplied = disclose(name, value)
    text = credential(disclosures=[supplied], _sd=[digest(supplied)], **{name: ABSENT})
    assert rejection(text).value == f"payload.{name}"


@pytest.mark.parametrize("value", [None, True, 1, [], {}, "", ABSENT], ids=repr)
@pytest.mark.parametrize("name", ["iss", "aud", "environment", "sub"])
def test_parties_are_strings(name, value):
    """Row 25: of the wrong type or missing is rejected."""
    assert rejection(credential(**{name: value})).value == f"payload.{name}"


@pytest.mark.parametrize(
    "iss",
    [
        ISSUER + "/", ISSUER + ":443", ISSUER.upper(), ISSUER[:-1], ISSUER + ".evil", "https://",
        ISSUER.replace("https", "http"), " " + ISSUER, [ISSUER], {"value": ISSUER},
    ],
    ids=str,
)  # fmt: skip
def test_iss(iss):
    """Row 26: the issuer is the API origin exactly."""
    assert rejection(credential(iss=iss)) is R.PAYLOAD_ISS


@pytest.mark.parametrize(
    "aud",
    [[AUDIENCE], [AUDIENCE, "other"], "client", "CLIENT-1", "client-1 ", "client-10"],
    ids=str,
)
def test_aud(aud):
    """Row 27: the audience is our client id exactly, never a list."""
    assert rejection(credential(aud=aud)) is R.PAYLOAD_AUD


@pytest.mark.parametrize("environment", ["live", "TEST", "tes", "test ", ["test"], {"test": 1}])
def test_environment(environment):
    """Row 28: the environment is the application's exactly."""
    assert rejection(credential(environment=environment)) is R.PAYLOAD_ENVIRONMENT
    assert rejection(credential(), environment="live") is R.PAYLOAD_ENVIRONMENT


@pytest.mark.parametrize("sub", [[SUBJECT], {SUBJECT: 1}, 1.5, [["x"]]], ids=repr)
def test_sub_is_a_string_whoever_is_asked_for(sub):
    """Row 29: what only holds the subject is no subject, also where nobody was named."""
    assert rejection(credential(sub=sub)) is R.PAYLOAD_SUB
    assert rejection(credential(sub=sub), subject=SUBJECT) is R.PAYLOAD_SUB


@pytest.mark.parametrize("sub", ["a\0b", "\0"])
def test_sub_is_storable(sub):
    """Row 29: a subject that no database takes is rejected."""
    assert rejection(credential(sub=sub)) is R.PAYLOAD_SUB


def test_sub_is_unicode():
    """Row 29: a lone surrogate is refused with the whole payload; other letters are a subject."""
    assert rejection(credential(sub="\ud800")) is R.PAYLOAD_JSON
    assert check(credential(sub="Ọlá 😀")).subject == "Ọlá 😀"


@pytest.mark.parametrize("subject", ["", "somebody", SUBJECT.upper(), SUBJECT + " ", SUBJECT[:-1]])
def test_sub_is_whom_we_asked_about(subject):
    """Row 29: another user's credential opens nothing."""
    assert rejection(credential(), subject=subject) is R.PAYLOAD_SUB
    assert check(credential(), subject=SUBJECT).subject == SUBJECT


NO_DATES = [
    "1795262400", "", None, True, False, [EPOCH_NOW], {}, 253_402_300_800, 10**30, 1e300,
    -62_135_596_801, -1e300, 10**90,
]  # fmt: skip


@pytest.mark.parametrize("exp", [*NO_DATES, ABSENT], ids=lambda exp: ascii(exp)[:40])
def test_exp(exp):
    """Row 30: an expiry is a number, and a date."""
    assert rejection(credential(exp=exp)) is R.PAYLOAD_EXP


@pytest.mark.parametrize("age", [0, 0.5, 1, 86_400, EPOCH_NOW, EPOCH_NOW + 62_135_596_800])
def test_expired(age):
    """Row 30: at its expiry a credential is expired, and no leeway helps."""
    assert rejection(credential(exp=EPOCH_NOW - age), leeway=3600) is R.PAYLOAD_EXPIRED


@pytest.mark.parametrize("life", [0.001, 0.5, 1, 10**9, 253_402_300_799 - EPOCH_NOW])
def test_not_expired(life):
    """Row 30: before its expiry it is not, fractions of a second included."""
    verified = check(credential(exp=EPOCH_NOW + life))
    assert verified.expires_at - NOW == timedelta(seconds=life)


@pytest.mark.parametrize("value", NO_DATES, ids=lambda value: ascii(value)[:40])
@pytest.mark.parametrize("name", ["nbf", "iat"])
def test_times_are_dates(name, value):
    """Row 31: if they are there, they are numbers, and dates."""
    assert rejection(credential(**{name: value})).value == f"payload.{name}"


@pytest.mark.parametrize(("name", "reason"), [("nbf", R.PAYLOAD_NBF), ("iat", R.PAYLOAD_IAT)])
def test_times_are_past(name, reason):
    """Row 31: not in the future, not by a fraction of a second, but by the leeway given."""
    for ahead in (0.5, 1, 29.5, 86_400):
        assert rejection(credential(**{name: EPOCH_NOW + ahead})) is reason
    assert check(credential(**{name: EPOCH_NOW + 29.5}), leeway=30).claims == CLAIMS
    assert rejection(credential(**{name: EPOCH_NOW + 30.5}), leeway=30) is reason
    for past in (EPOCH_NOW, EPOCH_NOW - 0.5, 0, -1, -62_135_596_800):
        assert check(credential(**{name: past})).claims == CLAIMS


def test_times_stay_dates_with_any_leeway():
    """Row 31: no leeway lets a time in that is no date."""
    last_second = datetime(9999, 12, 31, 23, 59, 58, tzinfo=UTC)
    text = credential(iat=253_402_300_805, exp=253_402_300_799)
    assert rejection(text, now=last_second, leeway=30) is R.PAYLOAD_IAT


def test_issued_at():
    """What the service says of the issue is handed on; it may say nothing."""
    assert check(credential()).issued_at == NOW - timedelta(seconds=60)
    assert check(credential(iat=ABSENT)).issued_at is None


ALL_DIGESTS = payload()["_sd"]


@pytest.mark.parametrize(
    "listed",
    [
        " ".join(ALL_DIGESTS), ALL_DIGESTS[0], dict.fromkeys(ALL_DIGESTS, 1), None, True, 1,
        [*ALL_DIGESTS, 1], [*ALL_DIGESTS, None], [ALL_DIGESTS], [*ALL_DIGESTS, []],
    ],
    ids=range(10),
)  # fmt: skip
def test_sd(listed):
    """Row 32: the digests are a list of strings, not something else that ``in`` works on."""
    assert rejection(credential(_sd=listed)) is R.PAYLOAD_SD


@pytest.mark.parametrize("repeated", [ALL_DIGESTS[0], "decoy"])
def test_sd_repeat(repeated):
    """Row 32: no digest is listed twice, disclosed, withheld or decoy."""
    text = credential(_sd=[*ALL_DIGESTS, repeated, "x", repeated], disclosures=DISCLOSURES[1:])
    assert rejection(text) is R.PAYLOAD_SD_REPEAT


@pytest.mark.parametrize("listed", [ABSENT, []], ids=repr)
def test_no_digests(listed):
    """Row 32: without digests there is nothing to disclose; a disclosure is not listed."""
    assert check(credential(_sd=listed, disclosures=[])).claims == {}
    assert rejection(credential(_sd=listed)) is R.DISCLOSURE_UNLISTED


@pytest.mark.parametrize("name", ["SHA-256", "sha256", "sha-512", "sha-384", "", None, ["sha-256"]])
def test_sd_alg(name):
    """Row 33: SHA-256 by its registered name, or by leaving the name out."""
    assert rejection(credential(_sd_alg=name)) is R.PAYLOAD_SD_ALG
    assert check(credential(_sd_alg=ABSENT)).claims == CLAIMS


@pytest.mark.parametrize(
    "extra",
    [
        {"address": {"_sd": [ALL_DIGESTS[0]]}},
        {"address": {"_sd": []}},
        {"a": [{"b": {"_sd": ["x"]}}]},
        {"a": {"_sd_alg": "sha-256"}},
        {"nationalities": [{"...": ALL_DIGESTS[0]}]},
        {"a": {"...": "x"}},
        {"...": "x"},
        {"a": [[[{"_sd": None}]]]},
    ],
)
def test_nested(extra):
    """Row 34: digests and placeholders are at the top level or the credential is rejected."""
    assert rejection(credential(**extra)) is R.PAYLOAD_NESTED
    escaped = json.dumps(payload(**extra)).replace('"..."', '"\\u002e.."')
    escaped = escaped.replace('{"_sd', '{"\\u005fsd')
    assert rejection(join(token(body=escaped), DISCLOSURES)) is R.PAYLOAD_NESTED


def test_other_members_are_ignored():
    """Row 44: what else the payload says is no claim."""
    extra = {"vct": "x", "cnf": {"jwk": {}}, "status": {}, "jti": "1", "age_over_21": True}
    assert check(credential(**extra)).claims == CLAIMS
