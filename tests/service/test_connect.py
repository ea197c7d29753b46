"""Connect codes as people paste them, and ``redeem_connect_code``: a yes, a no, and neither."""

import base64
import json
import re
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.test import override_settings
from hypothesis import given as tried
from hypothesis import strategies as st

from django_identity import conf
from django_identity.exceptions import (
    FlowError,
    MalformedAnswer,
    ServiceError,
    SubjectMismatch,
    VerificationPolicyNotMet,
)
from django_identity.service import ServiceClient
from django_identity.service.answers import Profile
from django_identity.service.connect import code_in
from tests import fake_service
from tests.example_counts import examples
from tests.fake_service import answer, http, refusal

CODE, SCOPES = "CNX-AB12-CD34", ("profile:basic", "kyc:status")


def redeem(service, scopes=SCOPES, **settings):
    with override_settings(DJANGO_IDENTITY=service.settings(**settings)):
        return ServiceClient(conf.application()).redeem_connect_code(CODE, scopes)


# The request


def test_the_request_is_the_specs(service):
    """JSON with code and scopes, and no other member but ``callback_url``."""
    more = {"callback_url": "https://site.example/"}
    redeem(service)
    result = ServiceClient(conf.application()).redeem_connect_code(CODE, SCOPES, **more)

    bodies = [
        json.loads(raw.partition(b"\r\n\r\n")[2]) for _, _, raw in service.requests
    ]
    sent = {"connect_code": CODE, "scopes": list(SCOPES)}
    assert bodies == [sent, sent | more]
    assert result.user_id == "subject-1"
    assert result.profile.email == "ada@example.org"
    assert result.kyc.kyc_level == "level_2"
    assert result.request_id == "req_1"
    assert result.signature == "a-signature"
    assert "subject-1" not in repr(result)
    assert "ada@example.org" not in repr(result)


@pytest.mark.parametrize(
    "secret",
    ["a:secret:with:colons", "geheimnis-äöü-\u4e2d\u6587-long"],
)
def test_any_secret_is_encoded_right(service, secret):
    """Basic credentials in UTF-8; only the first colon separates, so no id has one (RFC 7617)."""
    with pytest.raises(ImproperlyConfigured, match="CLIENT_ID"):
        redeem(service, CLIENT_ID="a:b")
    redeem(service, CLIENT_SECRET=secret)
    [(_, _, raw)] = service.requests
    [given] = re.findall(rb"(?i)^authorization: Basic (.*)\r$", raw, re.MULTILINE)
    assert base64.b64decode(given).decode() == f"test-client:{secret}"


# A yes


WITHOUT = object()


def changed(result, path, value):
    *parents, last = path.split(".")
    place = result
    for parent in parents:
        place = place[parent]
    place[last] = value
    if value is WITHOUT:
        del place[last]
    return result


#: A member of the answer, and what it must not be.
WRONG: dict[str, list[Any]] = {
    "status": [WITHOUT, "pending", ["approved"], None],
    "request_id": [WITHOUT, 7, "x" * 300],
    "user_id": [WITHOUT, 7, "", "x" * 300, "a\0", "..", None],
    "data": [WITHOUT, None, [], "x"],
    "data.profile": [WITHOUT, []],
    "data.profile.email": [7],
    "data.profile.first_name": [{}],
    "data.profile.last_name": ["x" * 5000],
    "data.kyc": [WITHOUT, {}, "verified"],
    "data.kyc.status": [WITHOUT, True],
    "data.kyc.kyc_level": [2],
    "data.kyc.verified_at": ["yesterday"],
    "data.kyc.provider": [["KYC"]],
    "issued_at": [WITHOUT, "soon", 1790000000],
    "signature": [WITHOUT, None, {}, "x" * 9000],
    "kyc": [{"status": "verified"}],
}


@pytest.mark.parametrize(
    ("path", "value"),
    [(path, value) for path, values in WRONG.items() for value in values],
    ids=lambda value: "missing" if value is WITHOUT else None,
)
def test_a_yes_of_wrong_types(service, path, value):
    """Every member is checked before anything is done with it."""
    result = changed(service.connect_result(), path, value)
    service.answers["request"] = {"success": True, "data": result}
    with pytest.raises(MalformedAnswer) as raised:
        redeem(service)
    assert raised.value.may_have_arrived
    assert raised.value.endpoint in ("connect", "profile", "kyc")


def test_a_profile_of_somebody_else(service):
    """An ``id`` in the profile must be the ``user_id``."""
    service.connect["data"] = {"profile": {"id": "somebody"}, "kyc": fake_service.KYC}
    with pytest.raises(SubjectMismatch):
        redeem(service)


def test_profile_and_kyc_beside_the_status(service):
    """ "data.profile" of the spec can be read both ways, and both are understood."""
    beside = service.connect_result()
    service.answers["request"] = {"success": True, "data": beside | beside.pop("data")}
    result = redeem(service)
    assert result.profile.first_name == "Ada"
    assert result.kyc is not None


def test_what_was_not_asked_for_is_not_taken(service):
    """With kyc:status alone the profile stays unknown, and with profile:basic alone the level."""
    level, profile = redeem(service, ["kyc:status"]), redeem(service, ["profile:basic"])
    assert level.profile.email == ""
    assert level.kyc is not None
    assert profile.profile.email == "ada@example.org"
    assert profile.kyc is None


# A no, and doubt


NOES: dict[str, list[Any]] = {
    "invalid_connect_code": [
        refusal("INVALID_CONNECT_CODE", status)
        for status in ("400 Bad Request", "200 OK", "500 Oops")
    ],
    "connect_code_required": [refusal("CONNECT_CODE_REQUIRED")],
    "environment_mismatch": [
        refusal("ENVIRONMENT_MISMATCH", "403 Forbidden"),
        refusal("ENVIRONMENT_MISMATCH", "403 No", kyc_required=True),
    ],
    "client_rejected": [
        refusal("UNAUTHORIZED", "401 Unauthorized"),
        http(b'{"error": "invalid_client"}', status="401 No"),
    ],
    "verification_policy_not_met": [
        refusal("POA_REQUIRED", "403 Forbidden"),
        refusal("poa_required", "403 Forbidden"),
        refusal("SELFIE_REQUIRED", "403 Forbidden", kyc_required=True),
        refusal("SELFIE_REQUIRED", "403 Forbidden", kyc_url="https://kyc.example/"),
        refusal("SELFIE_REQUIRED", "403 Forbidden", kyc_url="javascript:alert(1)"),
        answer(
            {"success": False, "kyc_url": "https://kyc.example/"},
            status="403 Forbidden",
        ),
    ],
    "service_refusal": [
        refusal("WHATEVER", "403 Forbidden"),
        refusal("WHATEVER", "403 Forbidden", kyc_required="true"),
        refusal("WHATEVER", "403 Forbidden", kyc_required=False, kyc_url=None),
        refusal("WHATEVER", "403 Forbidden", kyc_url=""),
        http(b'{"success": false}'),
        http(b'{"success": false, "data": {"status": "approved"}}'),
    ],
    "rate_limited": [http(b"", status="429 Slow", headers="Retry-After: 7\r\n")],
    # Whatever does not say what became of the code.
    "connect_outcome_unknown": [
        refusal("OOPS", "500 Oops"),
        http(b"{}", status="503 Busy"),
        fake_service.html("500 Oops"),
        fake_service.html(),
        http(b'{"success": true, "data": {"status": "\\ud800"}}'),
        fake_service.html("403 Forbidden"),
        http(b""),
        b"",
        http(b"[]"),
        http(b"{}"),
        http(b'{"success": "true", "data": {}}'),
        http(b'{"success": true}'),
        http(b'{"success": true, "data": null}'),
        http(b'{"success": true, "data": []}'),
        http(b'{"a":' * 40_000),
        fake_service.truncated,
        fake_service.huge,
    ],
    "malformed_answer": [http(b'{"success": true, "data": {}}', status="202 Accepted")],
}


@pytest.mark.parametrize(
    ("code", "given"),
    [(code, given) for code, answers in NOES.items() for given in answers],
)
def test_a_clear_no_is_typed(service, code, given):
    """Each code of the spec has its error, on whatever status. One request; the code is spent."""
    service.answers["request"] = given
    with pytest.raises(ServiceError) as raised:
        redeem(service)
    assert raised.value.code == code
    assert raised.value.may_have_arrived
    assert service.calls("request") == 1


@pytest.mark.parametrize(
    ("given", "environment", "shown"),
    [
        ("https://kyc.example/verify?x=1#y", "live", True),
        ("https://kyc.example", "test", True),
        ("http://127.0.0.1:9400/verify", "test", True),
        ("http://127.0.0.1:9400/verify", "live", False),
        ("javascript:alert(1)", "test", False),
        ("data:text/html,x", "test", False),
        ("//kyc.example/", "test", False),
        ("https:kyc.example", "test", False),
        ("https://user@kyc.example/", "test", False),
        ("https://good.example\\@evil.example/", "test", False),
        ("https://kyc.example/ x", "test", False),
        ("https://kyc.example/\n", "test", False),
        ('https://kyc.example/"onclick=', "test", False),
        ("https://[::1", "test", False),
        ("https://kyc.example/" + "x" * 3000, "test", False),
        (7, "test", False),
        ({"url": "https://kyc.example"}, "test", False),
    ],
)
def test_only_a_safe_kyc_url_is_kept(service, given, environment, shown):
    """Https alone, or plain http in test; the error is raised either way."""
    beside = {"kyc_required": True, "kyc_url": given}
    service.answers["request"] = refusal("POA_REQUIRED", "403 Forbidden", **beside)
    with pytest.raises(VerificationPolicyNotMet) as raised:
        redeem(service)
    profile = Profile.parse({"id": "a", "photo_url": given}, environment=environment)
    assert profile.photo_url == (given if shown else "")
    # The fake service is one for tests: a live application speaks no plain http with it.
    assert environment == "live" or raised.value.kyc_url == profile.photo_url


# What people paste


@pytest.mark.parametrize(
    "pasted",
    [
        "CNX-AB12-CD34",
        "cnx-ab12-cd34",
        "  cnx ab12 cd34\n",
        "cnx ab12cd34",
        "CNXAB12CD34",
        "CNX-AB12CD34",
        "CNX\u2013AB12\u2013CD34",
        "CNX\u2014AB12\u2212CD34",
        "CNX\u2010AB12\u2011CD34",
        "CNX_AB12_CD34",
        "CNX - AB12 - CD34",
        "CNX\u00a0AB12\u202fCD34",
        "CNX-AB12-\u200bCD34\ufeff",
        "CNX-AB\u00ad12-CD34",
        "\u2068CNX-\u2066AB12\u2069-CD34\u2069",
        "\uff23\uff2e\uff38\uff0d\uff21\uff22\uff11\uff12\uff0d\uff23\uff24\uff13\uff14",
        "“CNX-AB12-CD34”",
        "(CNX-AB12-CD34).",
        "CNX-AB\u0661\u0662-CD\u0663\u0664",
        "cnx ab\u06f1\u06f2 cd\u06f3\u06f4",
        "CNX-AB\u0967\u0968-CD\u0969\u096a",
        "CNX-AB\u09e7\u09e8-CD\u09e9\u09ea",
        "CNX-AB\uff11\uff12-CD\uff13\uff14",
        "CNX-AB1\u0662-CD\u06634",
        "Hi! My code is cnx-ab12-cd34, it works for ten minutes.",
        "Your CNX code from the service: CNX-AB12-CD34\nIt works once.",
        "my code is cnx ab12 cd34, thanks",
        "CNX-AB12-CD34 (again: cnx ab12 cd34)",
        "CNX-AB12-CD34 CNX-AB12-CD34",
    ],
)
def test_a_code_is_found_however_it_was_pasted(pasted):
    """Case, spaces, missing hyphens, look-alike dashes and a sentence around it do no harm."""
    assert code_in(pasted) == CODE


@pytest.mark.parametrize(
    "pasted",
    ["cnx-abcd-efgh", "cnxabcdefgh", "my cnx code from them is cnx-abcd-efgh"],
)
def test_a_code_of_letters_alone_is_found(pasted):
    """Codes need hold no digit."""
    assert code_in(pasted) == "CNX-ABCD-EFGH"


@pytest.mark.parametrize(
    "pasted",
    [
        "",
        " ",
        "CNX",
        "CNX-AB12-CD3",
        "CNX-AB12-CD345",
        "CNX-AB12-CD34-EF56",
        "XCNX-AB12-CD34",
        "CNX-AB12-CD3\u00e9",
        "CNX-AB12-CD34\u0661",
        "CNX-AB12-CD3\u2460\u0661",
        "CNX-AB12-CD3\u4e00",
        "\u0421NX-AB12-CD34",
        "CNX-AB12-CD34 or CNX-EF56-GH78",
        "my cnx code from them is cnx abcd efgh",
        "my cnx code from them is cnx ab12 cd34",
        "CNX-AB.2-CD34",
        "CNX-AB12\0-CD34",
        "a" * 2000,
        "CNX-AB12-CD34" + " " * 1000,
        "CNX-" * 250,
        "CNX -" * 200,
        "C" * 1000,
        "\ufdfa" * 1000,
    ],
)
def test_no_code_or_two_is_no_guess(pasted):
    """A guess would spend a code, so doubt is refused; the error does not quote it."""
    with pytest.raises(FlowError) as refused:
        code_in(pasted)
    assert len(pasted) < 5 or pasted not in repr(refused.value) + refused.value.detail


@examples(few=30, many=5_000)
@tried(st.text(max_size=300))
def test_any_text_ends_in_a_code_or_a_refusal(pasted):
    """Whatever is pasted, the answer has the shape of the spec, or there is none."""
    try:
        code = code_in(pasted)
    except FlowError:
        return
    assert re.fullmatch(r"CNX-[A-Z0-9]{4}-[A-Z0-9]{4}", code)
