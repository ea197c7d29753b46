"""The page against the sandbox: each row of the spec's Connect states and of its error table."""

from __future__ import annotations

import re

import pytest
from django.contrib.auth.models import User
from django.test import Client

from django_identity.lifecycle.standing import standing_of
from django_identity.models import LinkedIdentity
from tests.sandbox.driver import Application, Person, Sandbox
from tests.views.connect_sandbox.pages import hand_in, refused

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
    assert standing_of(user).has_kyc_level("level_2")
    assert person.code_states() == ["used"]
    shown = person.shown()
    assert shown["consents"] == {application.client_id: ["profile:basic", "kyc:status"]}
    assert (len(shown["emails"]), len(shown["notices"])) == (1, 1)


def test_valid_becomes_expired(
    sandbox: Sandbox, application: Application, person: Person, browser: Client
) -> None:
    """After ten minutes the code is invalid, and a new one works."""
    late = person.make_code()
    sandbox.control("POST", "clock", advance=601)
    assert "Make a new code" in refused(hand_in(browser, late), "invalid_connect_code")
    assert hand_in(browser, person.make_code()).status_code == 302


def test_a_policy_failure_spends_the_code(
    sandbox: Sandbox, application: Application, browser: Client
) -> None:
    """POA_REQUIRED: a link to get verified, and a new code after that."""
    newcomer = Person(sandbox, verified=True)
    application.require(proof_of_address=True)
    code = newcomer.make_code()
    page = refused(hand_in(browser, code), "verification_policy_not_met")
    (link,) = re.findall(r'<a class="identity-button" href="([^"]+)"[^>]*>Get verified', page)
    assert link.startswith(sandbox.origin)
    assert newcomer.code_states() == ["used"]
    refused(hand_in(browser, code), "connect_code_used")
    sandbox.control("POST", f"users/{newcomer.user_id}/proof-of-address")
    assert hand_in(browser, newcomer.make_code()).status_code == 302
