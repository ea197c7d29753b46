"""The page "Verify with a code": as it goes well, and at the sandbox in each state of a code."""

import hashlib
import hmac
import json
import re
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from django.core.cache import caches
from django.test import override_settings
from django.urls import reverse
from django.utils import timezone

from django_identity import conf
from django_identity.lifecycle.standing.standing import standing_of
from django_identity.models import ConnectRedemption, LinkedIdentity
from django_identity.policy import IdentityPolicy
from django_identity.testing.sandbox import RunningSandbox, SandboxPerson
from tests.factories import make_identity
from tests.fake_service import refusal
from tests.views.connect.pages import CODE, LOCAL, PASTED, hand_in, refused

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize(("days", "holds"), [(29, True), (31, False)])
def test_the_page_says_what_the_gates_say(service, browser, user, days, holds):
    service.connect = {"issued_at": (timezone.now() - timedelta(days=days)).isoformat()}

    page = browser.get(hand_in(browser, PASTED)["Location"]).text
    address, sent = reverse("identity_api:connect"), {"connect_code": CODE}
    said = browser.post(address, sent, content_type="application/json").json()

    assert ("You are verified at level 2." in page) is holds
    assert ("Your proof ran out" in page) is not holds
    assert (standing_of(user).level_shortfall("level_2") is None) is holds
    assert said["kyc_status"] == ("verified" if holds else "run_out")


def test_the_page_says_what_it_is_about(service, browser):
    page = browser.get(reverse("identity:connect")).content.decode()
    assert "Name, e-mail address and country" in page
    assert "Verification level and date" in page
    assert "works once, and for 10 minutes" in page
    (field,) = re.findall(r'<input type="text"[^>]*>', page)
    assert 'autocomplete="off"' in field
    assert browser.put(reverse("identity:connect")).status_code == 405


def test_a_second_code_updates_what_is_stored(service, browser, user):
    held: dict[str, Any] = {"kyc_level": "level_1", "kyc_status": "unverified"}
    make_identity(user, scopes=["profile:read"], **held)
    hand_in(browser)
    identity = LinkedIdentity.objects.get()
    assert identity.kyc_level == "level_2"
    assert identity.kyc_status == "verified"
    assert identity.consent == "granted"
    assert identity.linked_via == "oauth"
    assert identity.scopes == ["profile:read", "profile:basic", "kyc:status"]


@pytest.mark.parametrize(
    "given",
    ["", "hello", "CNX-EF34", "CNX-AB12-CD34 CNX-AB12-CD35", "\0"],
)
def test_what_is_no_code_is_not_sent(service, browser, given):
    """The shape is checked here, and such a submit is no try."""
    for _ in range(7):
        page = refused(hand_in(browser, given), "connect_code_malformed", 400)
        assert not given or given not in page
        assert "autofocus" in page[: page.index("<form")]
        assert page.count("Enter a code like CNX-XXXX-XXXX.") == 1
        assert 'aria-describedby="identity-connect-hint identity-connect-error"' in page
    assert service.requests == []
    assert not ConnectRedemption.objects.exists()


@pytest.mark.parametrize("is_good", [True, False])
def test_nothing_of_the_code_stays(service, browser, caplog, is_good):
    caplog.set_level("DEBUG", logger="django_identity")
    if not is_good:
        service.answers["request"] = refusal("INVALID_CONNECT_CODE")

    response = hand_in(browser, PASTED)
    assert response.status_code == (302 if is_good else 400)

    cached = vars(caches["default"])["_cache"]
    rows = [*ConnectRedemption.objects.values(), *LinkedIdentity.objects.values()]
    page = browser.get("/identity/account/").content
    held = f"{response.headers}{response.content!r}{caplog.text}{cached}{rows}{page!r}"
    held += f"{dict(browser.session)}{browser.cookies}"
    codes = (CODE, PASTED, "AB12", "CD34", "ab12 cd34")
    assert not [part for part in codes if part in held]


@pytest.mark.parametrize("has_page", [True, False])
def test_the_next_page_survives_the_sign_in_before_a_code(
    service,
    client,
    user,
    has_page,
):
    with override_settings(
        IDENTITY_LOCAL_SIGN_IN_URL="/accounts/login/" if has_page else None,
    ):
        response = client.get(reverse("identity:connect"), {"next": "/adults/?a=1&b=2"})
        address = urlsplit(response["Location"])
        assert address.path == ("/accounts/login/" if has_page else "/identity/login/")
        (back,) = parse_qs(address.query)["next"]
        client.force_login(user, backend=LOCAL)
        form = client.get(back)
    assert form.context["next"] == "/adults/?a=1&b=2"


# At the sandbox


def states(sandbox: RunningSandbox, person: SandboxPerson) -> list[str]:
    """Of the person's codes, the newest first."""
    codes = sandbox.control("GET", f"users/{person.user_id}")["connect_codes"]
    return [each["state"] for each in codes]


def test_a_valid_code_is_used_and_verifies_the_account(
    identity_sandbox,
    identity_application,
    identity_person,
    browser,
    user,
):
    code = identity_sandbox.connect_code(identity_person)
    response = hand_in(browser, f"Hello, my code is {code.lower().replace('-', ' ')}!")
    assert response["Location"] == "/identity/connected/"
    identity = LinkedIdentity.objects.get()
    assert identity.user == user
    assert identity.subject == identity_person.user_id
    assert identity.kyc_provider == "Sandbox KYC"
    assert identity.linked_via == "connect"
    assert identity.kyc_verified_at is not None
    assert standing_of(user).level_shortfall("level_2") is None
    assert states(identity_sandbox, identity_person) == ["used"]
    shown = identity_sandbox.control("GET", f"users/{identity_person.user_id}")
    scopes = ["profile:basic", "kyc:status"]
    assert shown["consents"] == {identity_application.client_id: scopes}
    assert identity.consent == "granted"
    assert identity.scopes == scopes
    assert len(shown["emails"]) == 1
    assert len(shown["notices"]) == 1


def test_a_code_that_is_good_no_more(
    identity_sandbox,
    identity_application,
    identity_person,
    browser,
):
    code = identity_sandbox.connect_code(identity_person)
    identity_sandbox.control("POST", "clock", advance=601)
    identity_sandbox.control("DELETE", "requests")
    page = refused(hand_in(browser, code), "invalid_connect_code", 400)
    assert "Make a new one" in page
    refused(hand_in(browser, code), "invalid_connect_code", 400)
    sent = identity_sandbox.control("GET", "requests")
    assert [each["endpoint"] for each in sent] == ["connect"]
    assert not LinkedIdentity.objects.exists()
    code = identity_sandbox.connect_code(identity_person)
    assert hand_in(browser, code).status_code == 302


def test_a_policy_failure_spends_the_code(
    identity_sandbox,
    identity_application,
    identity_person,
    browser,
):
    [app_id] = [
        each["app_id"]
        for each in identity_sandbox.control("GET", "applications")
        if identity_application.client_id in each["clients"].values()
    ]
    policy = f"applications/{app_id}/connect-policy"
    identity_sandbox.control("POST", policy, proof_of_address=True)
    code = identity_sandbox.connect_code(identity_person)

    page = refused(hand_in(browser, code), "verification_policy_not_met", 403)
    button = '<a class="identity-button" href="([^"]+)"[^>]*>Add proof of address<'
    [link] = re.findall(button, page)
    assert link.startswith(identity_sandbox.auth_url)
    assert states(identity_sandbox, identity_person) == ["used"]
    refused(hand_in(browser, code), "connect_code_used", 409)

    added = f"users/{identity_person.user_id}/proof-of-address"
    identity_sandbox.control("POST", added)
    code = identity_sandbox.connect_code(identity_person)
    assert hand_in(browser, code).status_code == 302
    assert LinkedIdentity.objects.get().kyc_level == "level_2"


def is_signed(_policy: IdentityPolicy, answer: Any) -> bool:
    """What a site does that was told how the signature is made."""
    signed = {
        name: part for name, part in answer.received.items() if name != "signature"
    }
    text = json.dumps(signed, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    key = conf.application().client_secret.reveal().encode()
    expected = hmac.new(key, text.encode(), hashlib.sha256).hexdigest()
    return hmac.compare_digest(expected, answer.signature)


def test_a_policy_can_check_the_signature(
    identity_sandbox,
    identity_application,
    identity_person,
    browser,
    monkeypatch,
):
    """It gets the answer as it came, so it can; nothing changes after its no."""
    monkeypatch.setattr(IdentityPolicy, "may_accept_connect_answer", is_signed)
    identity_sandbox.control("POST", "switches", connect_signature="jws")
    response = hand_in(browser, identity_sandbox.connect_code(identity_person))
    refused(response, "connect_answer_refused", 403)
    assert not LinkedIdentity.objects.exists()
    identity_sandbox.control("POST", "switches", connect_signature="hmac")
    response = hand_in(browser, identity_sandbox.connect_code(identity_person))
    assert response.status_code == 302
