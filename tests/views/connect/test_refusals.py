"""What comes of every way a code can go wrong, and who may hold what."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from django.test import Client, override_settings

from django_identity.models import LinkedIdentity
from django_identity.policy import IdentityPolicy
from tests import fake_service
from tests.fake_service import FakeService, http, refusal
from tests.views.connect.pages import SECRETS, hand_in, refused

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
        (fake_service.html("500 Oops"), "connect_outcome_unknown", 502, "Look at your account"),
        (fake_service.silent, "connect_outcome_unknown", 502, "Look at your account"),
        (fake_service.reset, "connect_outcome_unknown", 502, "Look at your account"),
        (fake_service.huge, "connect_outcome_unknown", 502, "Look at your account"),
        (http(b'{"success": true, "data": {}}'), "malformed_answer", 502, "Make a new code"),
    ],
    ids=lambda value: getattr(value, "__name__", None) or str(value)[:40],
)  # fmt: skip
def test_every_no_says_what_to_do_next(
    service: FakeService, browser: Client, caplog: pytest.LogCaptureFixture,
    answer: Any, code: str, status: int, advice: str,
) -> None:  # fmt: skip
    """A plain page, one log line, nothing changed; the same code is never sent again."""
    caplog.set_level(logging.DEBUG)
    service.answers["request"] = answer
    with fake_service.impatient(service):
        page = refused(hand_in(browser), code, status)
    assert advice in page
    lines = [r.getMessage() for r in caplog.records if "identity.connect.failed" in r.getMessage()]
    assert len(lines) == 1
    assert f"code={code} " in lines[0]
    assert not [secret for secret in SECRETS if secret in caplog.text]
    assert not LinkedIdentity.objects.exists()
    assert hand_in(browser).status_code >= 400
    assert service.calls("request") == 1


def test_a_link_to_get_verified(service: FakeService, browser: Client) -> None:
    """``kyc_url`` is a link if it is safe to follow, and never anything else."""
    beside = {"kyc_required": True, "kyc_url": "https://kyc.example/?a=1&b=2"}
    service.answers["request"] = refusal("POA_REQUIRED", "403 Forbidden", **beside)
    page = refused(hand_in(browser), "verification_policy_not_met", 403)
    assert 'href="https://kyc.example/?a=1&amp;b=2"' in page
    beside["kyc_url"] = "javascript:alert(1)"
    service.answers["request"] = refusal("POA_REQUIRED", "403 Forbidden", **beside)
    assert "javascript" not in hand_in(browser, "CNX-AB12-CD35").content.decode()


def test_a_service_that_is_not_there(service: FakeService, browser: Client) -> None:
    """Nothing was sent: the code is good still, and the try does not count."""
    beyond = service.settings(BASE_URL="http://127.0.0.1:9/api/v1", TIMEOUT=5)
    with override_settings(DJANGO_IDENTITY={"default": beyond}):
        for _ in range(7):
            page = refused(hand_in(browser), "service_unavailable", 503)
            assert "your code was not sent" in page
    assert hand_in(browser).status_code == 302


def test_a_busy_service(service: FakeService, browser: Client) -> None:
    """The code that met the 429 is spent. The person is asked to wait, a minute at most."""
    service.answers["request"] = http(b"", status="429 Slow", headers="Retry-After: 70\r\n")
    response = hand_in(browser)
    assert "counts as used up" in refused(response, "rate_limited", 503)
    assert response["Retry-After"] == "60"
    del service.answers["request"]
    assert hand_in(browser, "CNX-AB12-CD35").status_code == 302


# Who may hold what


class Doubting(IdentityPolicy):
    def may_accept_connect_answer(self, answer: Any) -> bool:
        return answer.signature == "another" and answer.received["status"] == "approved"


def test_the_policy_may_doubt_the_answer(service: FakeService, browser: Client) -> None:
    """A site that can check the signature decides; nothing changes after its no."""
    policy = "tests.views.connect.test_refusals.Doubting"
    with override_settings(DJANGO_IDENTITY={"default": service.settings(POLICY=policy)}):
        refused(hand_in(browser), "connect_answer_refused", 403)
        assert not LinkedIdentity.objects.exists()
        service.connect = {"signature": "another"}
        assert hand_in(browser, "CNX-AB12-CD35").status_code == 302
