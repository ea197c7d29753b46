"""The page against the sandbox: the spec's states of a code, and the answer's signature."""

import hashlib
import hmac
import json
import re
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client, override_settings

from django_identity import conf
from django_identity.conf import Application
from django_identity.lifecycle.standing.standing import standing_of
from django_identity.models import LinkedIdentity
from django_identity.policy import IdentityPolicy
from django_identity.testing.sandbox import RunningSandbox, SandboxPerson
from tests.views.connect.pages import hand_in, refused

pytestmark = pytest.mark.django_db(transaction=True)


def states(sandbox: RunningSandbox, person: SandboxPerson) -> list[str]:
    """Of the person's codes, the newest first."""
    codes = sandbox.control("GET", f"users/{person.user_id}")["connect_codes"]
    return [each["state"] for each in codes]


def test_a_valid_code_is_used_and_verifies_the_account(
    identity_sandbox: RunningSandbox, identity_application: Application,
    identity_person: SandboxPerson, browser: Client, user: User,
) -> None:  # fmt: skip
    """A good code verifies the account; the person is told, and consent stands at the service."""
    code = identity_sandbox.connect_code(identity_person)
    response = hand_in(browser, f"Hello, my code is {code.lower().replace('-', ' ')}!")
    assert response["Location"] == "/identity/connected/"
    identity = LinkedIdentity.objects.get()
    assert (identity.user, identity.subject) == (user, identity_person.user_id)
    assert (identity.kyc_provider, identity.linked_via) == ("Sandbox KYC", "connect")
    assert identity.kyc_verified_at is not None
    assert standing_of(user).level_shortfall("level_2") is None
    assert states(identity_sandbox, identity_person) == ["used"]
    shown = identity_sandbox.control("GET", f"users/{identity_person.user_id}")
    scopes = ["profile:basic", "kyc:status"]
    assert shown["consents"] == {identity_application.client_id: scopes}
    assert (identity.consent, identity.scopes) == ("granted", scopes)
    assert (len(shown["emails"]), len(shown["notices"])) == (1, 1)


def test_a_code_that_is_good_no_more(
    identity_sandbox: RunningSandbox, identity_application: Application,
    identity_person: SandboxPerson, browser: Client,
) -> None:  # fmt: skip
    """It is invalid, and is not sent a second time; a new one works."""
    code = identity_sandbox.connect_code(identity_person)
    identity_sandbox.control("POST", "clock", advance=601)
    identity_sandbox.control("DELETE", "requests")
    assert "Make a new one" in refused(
        hand_in(browser, code), "invalid_connect_code", 400
    )
    refused(hand_in(browser, code), "invalid_connect_code", 400)
    sent = identity_sandbox.control("GET", "requests")
    assert [each["endpoint"] for each in sent] == ["connect"]
    assert not LinkedIdentity.objects.exists()
    assert (
        hand_in(browser, identity_sandbox.connect_code(identity_person)).status_code
        == 302
    )


@pytest.mark.parametrize("lacks", ["proof of address", "level"])
def test_a_policy_failure_spends_the_code(
    identity_sandbox: RunningSandbox,
    identity_application: Application,
    browser: Client,
    lacks: str,
) -> None:
    """POA_REQUIRED, or any other code: a link to get verified, and a new code after that."""
    newcomer = identity_sandbox.create_person(verified=lacks != "level")
    wanted = (
        {"kyc_level": "level_2"} if lacks == "level" else {"proof_of_address": True}
    )
    [app_id] = [
        each["app_id"] for each in identity_sandbox.control("GET", "applications")
        if identity_application.client_id in each["clients"].values()
    ]  # fmt: skip
    identity_sandbox.control("POST", f"applications/{app_id}/connect-policy", **wanted)
    code = identity_sandbox.connect_code(newcomer)
    page = refused(hand_in(browser, code), "verification_policy_not_met", 403)
    button = "Get verified" if lacks == "level" else "Add proof of address"
    (link,) = re.findall(
        rf'<a class="identity-button" href="([^"]+)"[^>]*>{button}<', page
    )
    assert link.startswith(identity_sandbox.auth_url)
    assert states(identity_sandbox, newcomer) == ["used"]
    refused(hand_in(browser, code), "connect_code_used", 409)
    if lacks == "level":
        cause, how = "verify", {"bvn": "22222222222"}
    else:
        cause, how = "proof-of-address", {}
    identity_sandbox.control("POST", f"users/{newcomer.user_id}/{cause}", **how)
    assert hand_in(browser, identity_sandbox.connect_code(newcomer)).status_code == 302
    assert LinkedIdentity.objects.get().kyc_level == "level_2"


class ChecksTheSignature(IdentityPolicy):
    """What a site does that was told how the signature is made."""

    def may_accept_connect_answer(self, answer: Any) -> bool:
        signed = {
            name: part for name, part in answer.received.items() if name != "signature"
        }
        text = json.dumps(
            signed, sort_keys=True, separators=(",", ":"), ensure_ascii=False
        )
        key = conf.application().client_secret.reveal().encode()
        expected = hmac.new(key, text.encode(), hashlib.sha256).hexdigest()
        return hmac.compare_digest(expected, answer.signature)


def test_a_policy_can_check_the_signature(
    identity_sandbox: RunningSandbox, identity_application: Application,
    identity_person: SandboxPerson, browser: Client, settings: Any,
) -> None:  # fmt: skip
    """It gets the answer as it came, so it can; nothing changes after its no."""
    given = settings.DJANGO_IDENTITY
    checking = {**given, "POLICY": f"{__name__}.ChecksTheSignature"}
    with override_settings(DJANGO_IDENTITY=checking):
        identity_sandbox.control("POST", "switches", connect_signature="jws")
        response = hand_in(browser, identity_sandbox.connect_code(identity_person))
        refused(response, "connect_answer_refused", 403)
        assert not LinkedIdentity.objects.exists()
        identity_sandbox.control("POST", "switches", connect_signature="hmac")
        response = hand_in(browser, identity_sandbox.connect_code(identity_person))
        assert response.status_code == 302
