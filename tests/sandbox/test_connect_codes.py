"""Connect codes: their shape, their states, and what makes one invalid."""

import re
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from tests.sandbox.connect_driver import (
    BOTH_SCOPES,
    codes_of,
    connect,
    make_code,
    policy,
    redeem,
    refusal,
)
from tests.sandbox.driver import Application, Person, Sandbox

VALID_MINUTES = 10


def test_code_has_its_shape_and_is_new_each_time(person: Person) -> None:
    """Fifty codes are fifty different ones of the specified shape."""
    codes = {make_code(person) for _ in range(50)}
    assert len(codes) == 50
    assert all(re.fullmatch(r"CNX-[A-Z0-9]{4}-[A-Z0-9]{4}", code) for code in codes)


def test_code_works_once(application: Application, person: Person) -> None:
    """The second redemption fails, and so does every later one."""
    code = make_code(person)
    assert redeem(application, code).status_code == 200
    for _ in range(2):
        assert refusal(redeem(application, code)) == (400, "INVALID_CONNECT_CODE")
    assert codes_of(person) == ["used"]


def test_code_works_once_under_parallel_requests(application: Application, person: Person) -> None:
    """Of twenty requests at once one gets the data."""
    code = make_code(person)
    with ThreadPoolExecutor(20) as pool:
        answers = list(pool.map(lambda _: redeem(application, code), range(20)))
    assert sorted(answer.status_code for answer in answers) == [200] + [400] * 19


def test_code_is_valid_for_ten_minutes(
    sandbox: Sandbox, application: Application, person: Person
) -> None:
    """A code works just before its ten minutes are over and not after."""
    early, late = make_code(person), make_code(person)
    sandbox.control("POST", "clock", advance=VALID_MINUTES * 60 - 5)
    assert redeem(application, early).status_code == 200
    sandbox.control("POST", "clock", advance=6)
    assert refusal(redeem(application, late)) == (400, "INVALID_CONNECT_CODE")
    assert codes_of(person) == ["expired", "used"]


def test_code_of_another_application_is_spent_by_the_first(
    sandbox: Sandbox, application: Application, person: Person
) -> None:
    """A code is bound to the person and not to an application, and only one gets it."""
    code = make_code(person)
    assert redeem(application, code).status_code == 200
    assert refusal(redeem(Application(sandbox), code)) == (400, "INVALID_CONNECT_CODE")


@pytest.mark.parametrize(
    "code",
    [
        "CNX-AAAA-0000",
        " CNX-AAAA-0000",
        "CNX-AAAA-0000\n",
        "CNX-ÄÄÄÄ-0000",
        "CNX-AAAA-\u0660\u0660\u0660\u0660",
        "x",
        "' OR 1=1 --",
        "\ud800",
        "A" * 100_000,
        12,
        ["CNX-AAAA-0000"],
        {},
    ],
)
def test_unknown_code_is_invalid(application: Application, code: object) -> None:
    """Whatever is sent as a code and is none gets one and the same answer."""
    answer = connect(application, {"connect_code": code, "scopes": BOTH_SCOPES})
    assert refusal(answer) == (400, "INVALID_CONNECT_CODE")


def test_code_is_compared_exactly(application: Application, person: Person) -> None:
    """The service forgives no lower case and no missing hyphen; the code stays valid."""
    code = make_code(person)
    for spelled in (code.lower(), code.replace("-", ""), f" {code}"):
        assert refusal(redeem(application, spelled)) == (400, "INVALID_CONNECT_CODE")
    assert redeem(application, code).status_code == 200


@pytest.mark.parametrize("missing", [{}, {"connect_code": None}, {"connect_code": ""}])
def test_missing_code(sandbox: Sandbox, application: Application, missing: dict[str, Any]) -> None:
    """Both rules that the specification has for a missing code can be had."""
    body = missing | {"scopes": BOTH_SCOPES}
    assert refusal(connect(application, body)) == (400, "INVALID_CONNECT_CODE")
    retired = body | {"infra_user_id": "u-1"}
    assert refusal(connect(application, retired)) == (400, "CONNECT_CODE_REQUIRED")
    sandbox.control("POST", "switches", missing_connect_code="required")
    assert refusal(connect(application, body)) == (400, "CONNECT_CODE_REQUIRED")


@pytest.mark.parametrize("spends", [True, False])
def test_unknown_scope(
    sandbox: Sandbox, application: Application, person: Person, spends: bool
) -> None:
    """A scope that Connect does not have is refused; the switch says what becomes of the code."""
    sandbox.control("POST", "switches", connect_refusals_spend=spends)
    answer = redeem(application, make_code(person), scopes=["profile:basic", "profile:read"])
    assert refusal(answer) == (400, "INVALID_SCOPE")
    assert codes_of(person) == ["used" if spends else "valid"]


@pytest.mark.parametrize("spends", [True, False])
@pytest.mark.parametrize(("mode", "environment"), [("test", "live"), ("live", "test")])
def test_environments_do_not_mix(
    sandbox: Sandbox, mode: str, environment: str, spends: bool
) -> None:
    """Test credentials get no real user's code and live ones no sandbox user's."""
    sandbox.control("POST", "switches", connect_refusals_spend=spends)
    person = Person(sandbox, environment=environment, verified=True)
    answer = redeem(Application(sandbox, mode), make_code(person))
    assert refusal(answer) == (403, "ENVIRONMENT_MISMATCH")
    assert "kyc_required" not in answer.json()
    assert codes_of(person) == ["used" if spends else "valid"]
    assert sandbox.control("GET", f"users/{person.user_id}")["consents"] == {}


def test_live_credentials_redeem_a_live_users_code(sandbox: Sandbox) -> None:
    """Live goes with live."""
    person = Person(sandbox, environment="live", verified=True)
    assert redeem(Application(sandbox, "live"), make_code(person)).status_code == 200


@pytest.mark.parametrize(
    ("required", "account", "code"),
    [
        ({"kyc_level": "level_2"}, {}, "KYC_LEVEL_REQUIRED"),
        ({"proof_of_address": True}, {"verified": True}, "POA_REQUIRED"),
        (
            {"kyc_level": "level_2", "proof_of_address": True},
            {"proof_of_address": True},
            "KYC_LEVEL_REQUIRED",
        ),
    ],
)
def test_policy_that_is_not_met_spends_the_code(
    sandbox: Sandbox,
    application: Application,
    required: dict[str, object],
    account: dict[str, object],
    code: str,
) -> None:
    """Each requirement has its code; the answer leads to verification, and a new code is needed."""
    person = Person(sandbox, **account)
    policy(application, **required)
    spent = make_code(person)
    answer = redeem(application, spent)
    assert refusal(answer) == (403, code)
    assert answer.json()["kyc_required"] is True
    assert answer.json()["kyc_url"] == f"{sandbox.origin}/account/verify"
    policy(application, kyc_level="level_1", proof_of_address=False)
    assert refusal(redeem(application, spent)) == (400, "INVALID_CONNECT_CODE")
    shown = sandbox.control("GET", f"users/{person.user_id}")
    assert shown["consents"] == {}
    assert sandbox.control("GET", f"users/{person.user_id}/notices") == []


def test_policy_failure_spends_the_code_whatever_else_does(
    sandbox: Sandbox, application: Application
) -> None:
    """The switch is for what the specification leaves open; this it does not."""
    sandbox.control("POST", "switches", connect_refusals_spend=False)
    policy(application, proof_of_address=True)
    person = Person(sandbox, verified=True)
    assert refusal(redeem(application, make_code(person))) == (403, "POA_REQUIRED")
    assert codes_of(person) == ["used"]


def test_policy_that_is_met_lets_pass(sandbox: Sandbox, application: Application) -> None:
    """A person who has what is required is shared."""
    person = Person(sandbox, verified=True, proof_of_address=True)
    policy(application, kyc_level="level_2", proof_of_address=True)
    assert redeem(application, make_code(person)).status_code == 200


def test_policy_is_one_applications_own(
    sandbox: Sandbox, application: Application, person: Person
) -> None:
    """What one application requires is nothing to another."""
    policy(application, proof_of_address=True)
    assert redeem(Application(sandbox), make_code(person)).status_code == 200


def test_rejected_person_does_not_meet_the_level(
    sandbox: Sandbox, application: Application, person: Person
) -> None:
    """A verification that was invalidated no longer counts."""
    policy(application, kyc_level="level_2")
    sandbox.control("POST", f"users/{person.user_id}/verify", bvn="11111111111")
    assert refusal(redeem(application, make_code(person))) == (403, "KYC_LEVEL_REQUIRED")


def test_answer_lost_after_the_code_was_spent(application: Application, person: Person) -> None:
    """A drop *after* has spent the code; a drop *before* has not."""
    sandbox, code = application.sandbox, make_code(person)
    sandbox.control("POST", "faults", kind="drop", endpoint="connect")
    with pytest.raises(httpx.RemoteProtocolError):
        redeem(application, code)
    assert codes_of(person) == ["valid"]
    sandbox.control("POST", "faults", kind="drop", endpoint="connect", when="after")
    with pytest.raises(httpx.RemoteProtocolError):
        redeem(application, code)
    assert codes_of(person) == ["used"]
