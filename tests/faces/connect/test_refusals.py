"""What comes of every way a code can go wrong, and who may hold what."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.cache import cache
from django.test import Client, override_settings

from django_identity.models import LinkedIdentity
from django_identity.policy import IdentityPolicy
from tests import hostile
from tests.faces.connect.pages import SECRETS, hand_in, refused
from tests.hostile import HostileService, http, refusal
from tests.records import make_identity, make_user

pytestmark = pytest.mark.django_db(transaction=True)


# What the service says no to, and says badly


@pytest.mark.parametrize(
    ("answer", "code", "status", "advice"),
    [
        (refusal("INVALID_CONNECT_CODE"), "invalid_connect_code", 400, "Make a new code"),
        (refusal("CONNECT_CODE_REQUIRED"), "connect_code_required", 502, "tell the people"),
        (refusal("ENVIRONMENT_MISMATCH", "403 No"), "environment_mismatch", 502, "tell the people"),
        (refusal("POA_REQUIRED", "403 No"), "verification_policy_not_met", 403, "make a new code"),
        (refusal("OTHER_REQUIRED", "403 No", kyc_required=True), "verification_policy_not_met",
         403, "make a new code"),
        (refusal("UNAUTHORIZED", "401 No"), "client_rejected", 502, "tell the people"),
        (refusal("WHATEVER", "418 No"), "service_refusal", 502, "Make a new code"),
        (refusal("NOPE", "200 OK"), "service_refusal", 502, "Make a new code"),
        (http(b"", status="429 Slow", headers="Retry-After: 70\r\n"), "rate_limited", 503,
         "Make a new code"),
        (hostile.html("500 Oops"), "connect_outcome_unknown", 502, "Look at your account"),
        (hostile.silent, "connect_outcome_unknown", 502, "Look at your account"),
        (hostile.reset, "connect_outcome_unknown", 502, "Look at your account"),
        (hostile.huge, "connect_outcome_unknown", 502, "Look at your account"),
        (http(b'{"success": true, "data": {}}'), "malformed_answer", 502, "Make a new code"),
    ],
    ids=lambda value: getattr(value, "__name__", None) or str(value)[:40],
)  # fmt: skip
def test_every_no_says_what_to_do_next(
    service: HostileService, browser: Client, caplog: pytest.LogCaptureFixture,
    answer: Any, code: str, status: int, advice: str,
) -> None:  # fmt: skip
    """A plain page, one log line, nothing changed; the same code is never sent again."""
    caplog.set_level(logging.DEBUG)
    service.answers["request"] = answer
    with hostile.impatient(service):
        page = refused(hand_in(browser), code, status)
    assert advice in page
    lines = [r.getMessage() for r in caplog.records if "identity.connect.failed" in r.getMessage()]
    assert len(lines) == 1
    assert f"code={code} " in lines[0]
    assert not [secret for secret in SECRETS if secret in caplog.text]
    assert not LinkedIdentity.objects.exists()
    assert hand_in(browser).status_code >= 400
    assert service.calls("request") == 1


def test_a_link_to_get_verified(service: HostileService, browser: Client) -> None:
    """``kyc_url`` is a link if it is safe to follow, and never anything else."""
    beside = {"kyc_required": True, "kyc_url": "https://kyc.example/?a=1&b=2"}
    service.answers["request"] = refusal("POA_REQUIRED", "403 Forbidden", **beside)
    page = refused(hand_in(browser), "verification_policy_not_met", 403)
    assert 'href="https://kyc.example/?a=1&amp;b=2"' in page
    beside["kyc_url"] = "javascript:alert(1)"
    service.answers["request"] = refusal("POA_REQUIRED", "403 Forbidden", **beside)
    assert "javascript" not in hand_in(browser, "CNX-AB12-CD35").content.decode()


def test_a_service_that_is_not_there(service: HostileService, browser: Client) -> None:
    """Nothing was sent: the code is good still, and the try does not count."""
    beyond = service.settings(BASE_URL="http://127.0.0.1:9/api/v1", TIMEOUT=5)
    with override_settings(DJANGO_IDENTITY={"default": beyond}):
        for _ in range(7):
            page = refused(hand_in(browser), "service_unavailable", 503)
            assert "your code was not sent" in page
    assert hand_in(browser).status_code == 302


def test_a_pause_that_the_service_asked_for(service: HostileService, browser: Client) -> None:
    """The code that met the 429 is spent; those of the pause are not sent, so they stay good."""
    slow_down = http(b"", status="429 Slow", headers="Retry-After: 70\r\n")
    service.answers["request"] = slow_down
    assert "counts as used up" in refused(hand_in(browser), "rate_limited", 503)
    for _ in range(7):
        response = hand_in(browser, "CNX-AB12-CD35")
        assert "your code was not sent" in refused(response, "rate_limited", 503)
        assert 60 <= int(response["Retry-After"]) <= 70
    assert service.calls("request") == 1
    cache.clear()  # as when the pause is over
    del service.answers["request"]
    assert hand_in(browser, "CNX-AB12-CD35").status_code == 302


# Who may hold what


def test_a_subject_of_another_user(service: HostileService, browser: Client) -> None:
    """A linked subject stays where it is."""
    owner = make_user("owner")
    make_identity(owner)
    refused(hand_in(browser), "subject_taken", 403)
    assert LinkedIdentity.objects.get().user == owner


def test_a_user_of_another_subject(service: HostileService, browser: Client, user: User) -> None:
    """Another user's id than the linked one changes nothing."""
    identity = make_identity(user, subject="another-subject", kyc_level="level_1")
    before = identity.updated_at
    refused(hand_in(browser), "user_holds_another", 403)
    identity.refresh_from_db()
    assert (identity.subject, identity.kyc_level) == ("another-subject", "level_1")
    assert identity.updated_at == before


class Doubting(IdentityPolicy):
    def may_accept_connect_answer(self, answer: Any) -> bool:
        return answer.signature == "another" and answer.received["status"] == "approved"


def test_the_policy_may_doubt_the_answer(service: HostileService, browser: Client) -> None:
    """A site that can check the signature decides; nothing changes after its no."""
    policy = "tests.faces.connect.test_refusals.Doubting"
    with override_settings(DJANGO_IDENTITY={"default": service.settings(POLICY=policy)}):
        refused(hand_in(browser), "connect_answer_refused", 403)
        assert not LinkedIdentity.objects.exists()
        service.connect = {"signature": "another"}
        assert hand_in(browser, "CNX-AB12-CD35").status_code == 302
