"""The page against the sandbox: the spec's Connect states, its error table, and its answer."""

import hashlib
import hmac
import json
import re
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from django_identity import conf
from django_identity.exceptions import ServiceRefusal
from django_identity.lifecycle.standing import standing_of
from django_identity.models import Consent, LinkedIdentity
from django_identity.policy import IdentityPolicy
from django_identity.service import ServiceClient
from tests.sandbox.driver import VERIFIED_BVN, Application, Person, Sandbox
from tests.views.connect.pages import hand_in
from tests.views.connect_sandbox.pages import refused, site_of

pytestmark = pytest.mark.django_db(transaction=True)


def test_valid_becomes_used(
    application: Application, person: Person, browser: Client, user: User
) -> None:
    """A good code verifies the account; the person is told, and consent stands at the service."""
    code = person.make_code()
    response = hand_in(browser, f"Hello, my code is {code.lower().replace('-', ' ')}!")
    assert response["Location"] == "/identity/connected/"
    identity = LinkedIdentity.objects.get()
    assert (identity.user, identity.subject) == (user, person.user_id)
    assert (identity.kyc_level, identity.kyc_status) == ("level_2", "verified")
    assert (identity.kyc_provider, identity.linked_via) == ("Sandbox KYC", "connect")
    assert identity.kyc_verified_at is not None
    assert standing_of(user).level_shortfall("level_2") is None
    assert person.code_states() == ["used"]
    shown = person.shown()
    assert shown["consents"] == {application.client_id: ["profile:basic", "kyc:status"]}
    assert (len(shown["emails"]), len(shown["notices"])) == (1, 1)


@pytest.mark.parametrize("how", ["used elsewhere", "expired"])
def test_a_code_that_is_good_no_more(
    sandbox: Sandbox, application: Application, person: Person, browser: Client, how: str
) -> None:
    """It is invalid, and is not sent a second time; a new one works."""
    code = person.make_code()
    if how == "expired":
        sandbox.control("POST", "clock", advance=601)
    else:
        assert application.connect(code).status_code == 200
    sandbox.control("DELETE", "requests")
    assert "Make a new code" in refused(hand_in(browser, code), "invalid_connect_code")
    refused(hand_in(browser, code), "connect_code_used")
    assert [each["endpoint"] for each in sandbox.control("GET", "requests")] == ["connect"]
    assert not LinkedIdentity.objects.exists()
    assert hand_in(browser, person.make_code()).status_code == 302


@pytest.mark.parametrize("lacks", ["proof of address", "level"])
def test_a_policy_failure_spends_the_code(
    sandbox: Sandbox, application: Application, browser: Client, lacks: str
) -> None:
    """POA_REQUIRED, or any other code: a link to get verified, and a new code after that."""
    newcomer = Person(sandbox, verified=lacks != "level")
    wanted = {"kyc_level": "level_2"} if lacks == "level" else {"proof_of_address": True}
    application.require(**wanted)
    code = newcomer.make_code()
    page = refused(hand_in(browser, code), "verification_policy_not_met")
    (link,) = re.findall(r'<a class="identity-button" href="([^"]+)"[^>]*>Get verified', page)
    assert link.startswith(sandbox.origin)
    assert newcomer.code_states() == ["used"]
    refused(hand_in(browser, code), "connect_code_used")
    if lacks == "level":
        sandbox.control("POST", f"users/{newcomer.user_id}/verify", bvn=VERIFIED_BVN)
    else:
        sandbox.control("POST", f"users/{newcomer.user_id}/proof-of-address")
    assert hand_in(browser, newcomer.make_code()).status_code == 302
    assert LinkedIdentity.objects.get().kyc_level == "level_2"


def test_environments_do_not_mix(
    sandbox: Sandbox, application: Application, browser: Client
) -> None:
    """ENVIRONMENT_MISMATCH: test credentials and a live person."""
    live = Person(sandbox, environment="live", verified=True)
    refused(hand_in(browser, live.make_code()), "environment_mismatch")
    assert not LinkedIdentity.objects.exists()


def test_the_retired_form(application: Application) -> None:
    """CONNECT_CODE_REQUIRED, or INVALID_CONNECT_CODE as the error table has it, are typed."""
    client = ServiceClient(conf.application())
    for value, code in (("required", "connect_code_required"), ("invalid", "invalid_connect_code")):
        application.sandbox.control("POST", "switches", missing_connect_code=value)
        with pytest.raises(ServiceRefusal) as raised:
            client.redeem_connect_code("", ["profile:basic"])
        assert raised.value.code == code


def test_an_unknown_scope(application: Application, person: Person, browser: Client) -> None:
    """What Connect does not have is a plain refusal."""
    with site_of(application, CONNECT_SCOPES=["profile:basic", "passport:read"]):
        refused(hand_in(browser, person.make_code()), "service_refusal")


def test_a_revoked_consent_comes_back_with_a_new_code(
    application: Application, person: Person, browser: Client
) -> None:
    """Consent none, granted, revoked, granted."""
    hand_in(browser, person.make_code())
    path = f"users/{person.user_id}/consents/{application.client_id}/revoke"
    person.sandbox.control("POST", path)
    LinkedIdentity.objects.update(
        consent=Consent.REVOKED, revoked_at=timezone.now() - timedelta(seconds=30)
    )
    assert hand_in(browser, person.make_code()).status_code == 302
    assert LinkedIdentity.objects.get().consent == Consent.GRANTED


@pytest.mark.parametrize(("nested", "signature"), [(True, "jws"), (False, "hmac")])
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
    """It gets the answer as it came, so it can; nothing changes after its no."""
    with site_of(application, POLICY=f"{__name__}.ChecksTheSignature"):
        sandbox.control("POST", "switches", connect_signature="jws")
        response = hand_in(browser, person.make_code())
        refused(response, "connect_answer_refused")
        assert response.status_code == 403
        assert not LinkedIdentity.objects.exists()
        sandbox.control("POST", "switches", connect_signature="hmac")
        assert hand_in(browser, person.make_code()).status_code == 302
