"""The page against the sandbox: every reading of its answer, its signature, and its faults."""

from __future__ import annotations

import hashlib
import hmac
import json
import time
from typing import Any

import pytest
from django.test import Client

from django_identity import conf
from django_identity.models import LinkedIdentity
from django_identity.policy import IdentityPolicy
from tests.sandbox.driver import Application, Person, Sandbox
from tests.views.connect_sandbox.pages import asked, hand_in, refused, site_of

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize(
    ("nested", "signature"), [(True, "hmac"), (False, "hmac"), (True, "jws"), (False, "jws")]
)
def test_every_reading_of_the_answer(
    sandbox: Sandbox, application: Application, person: Person, browser: Client,
    nested: bool, signature: str,
) -> None:  # fmt: skip
    """Wherever profile and KYC stand, and however it is signed."""
    sandbox.control("POST", "switches", connect_nested=nested, connect_signature=signature)
    assert hand_in(browser, person.make_code()).status_code == 302
    identity = LinkedIdentity.objects.get()
    assert identity.kyc_status == "verified"
    domain = person.account["email"].partition("@")[2]
    assert identity.connect_person.endswith(f"***@{domain}")


class ChecksTheSignature(IdentityPolicy):
    """What a site does that was told how the signature is made."""

    def may_accept_connect_answer(self, answer: Any) -> bool:
        signed = {name: part for name, part in answer.received.items() if name != "signature"}
        text = json.dumps(signed, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        key = conf.application().client_secret.reveal().encode()
        expected = hmac.new(key, text.encode(), hashlib.sha256).hexdigest()
        return hmac.compare_digest(expected, answer.signature)


def test_a_policy_can_check_the_signature(
    sandbox: Sandbox, application: Application, person: Person, browser: Client
) -> None:
    """It gets the answer as it came, so it can."""
    checking = f"{__name__}.ChecksTheSignature"
    with site_of(application, POLICY=checking):
        assert hand_in(browser, person.make_code()).status_code == 302
        sandbox.control("POST", "switches", connect_signature="jws")
        refused(hand_in(browser, person.make_code()), "connect_answer_refused")


@pytest.mark.parametrize(
    "fault",
    [
        {"kind": "drop", "when": "after"},
        {"kind": "drop_midway"},
        {"kind": "malformed", "when": "after"},
        {"kind": "status", "status": 500, "when": "after"},
        {"kind": "status", "status": 503},
        {"kind": "delay", "seconds": 1.2, "when": "after"},
    ],
    ids=str,
)
def test_a_fault_after_the_code_was_spent(
    sandbox: Sandbox, application: Application, person: Person, browser: Client,
    fault: dict[str, Any],
) -> None:  # fmt: skip
    """The outcome is unknown, the code is never sent again, a new one works."""
    sandbox.control("POST", "faults", endpoint="connect", **fault)
    with site_of(application, TIMEOUT=0.8):
        code = person.make_code()
        refused(hand_in(browser, code), "connect_outcome_unknown")
        refused(hand_in(browser, code), "connect_code_used")
        assert hand_in(browser, person.make_code()).status_code == 302
    give_up = time.monotonic() + 60
    while asked(sandbox) < 2 and time.monotonic() < give_up:
        time.sleep(0.1)  # a delayed request stands in the log when it has been answered
    assert asked(sandbox) == 2
