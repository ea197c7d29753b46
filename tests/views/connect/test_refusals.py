"""What comes of every way a code can go wrong, or come again."""

import logging
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import override_settings
from django.urls import reverse
from django.utils import timezone
from django.views.debug import ExceptionReporter

from django_identity import flows
from django_identity.exceptions import UnexpectedError
from django_identity.lifecycle.arriving import connect
from django_identity.models import ConnectRedemption, LinkedIdentity
from django_identity.policy import IdentityPolicy
from django_identity.service import ServiceClient
from tests import fake_service
from tests.factories import make_identity, make_user
from tests.fake_service import http, refusal
from tests.views.connect.pages import PASTED, SECRETS, browser_of, hand_in, refused

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize(
    ("answer", "code", "status", "advice"),
    [
        (
            refusal("INVALID_CONNECT_CODE"),
            "invalid_connect_code",
            400,
            "Make a new one",
        ),
        (
            refusal("CONNECT_CODE_REQUIRED"),
            "connect_code_required",
            502,
            "tell the people",
        ),
        (
            refusal("ENVIRONMENT_MISMATCH", "403 No"),
            "environment_mismatch",
            502,
            "tell the people",
        ),
        (
            refusal("POA_REQUIRED", "403 No"),
            "verification_policy_not_met",
            403,
            "make a new code",
        ),
        (refusal("UNAUTHORIZED", "401 No"), "client_rejected", 502, "tell the people"),
        (refusal("WHATEVER", "418 No"), "service_refusal", 502, "Make a new code"),
        (
            http(b"", status="429 Slow", headers="Retry-After: 70\r\n"),
            "rate_limited",
            503,
            "counts as used up",
        ),
        (
            fake_service.html("500 Oops"),
            "connect_outcome_unknown",
            502,
            "Look at your account",
        ),
        (fake_service.reset, "connect_outcome_unknown", 502, "Look at your account"),
        (
            http(b'{"success": true, "data": {}}'),
            "malformed_answer",
            502,
            "Make a new code",
        ),
    ],
    ids=lambda value: getattr(value, "__name__", None) or str(value)[:40],
)
def test_every_no_says_what_to_do_next(
    service,
    browser,
    caplog,
    answer,
    code,
    status,
    advice,
):
    caplog.set_level(logging.DEBUG)
    service.answers["request"] = answer
    response = hand_in(browser)
    assert advice in refused(response, code, status)
    # The person is asked to wait a minute at most.
    assert response.get("Retry-After") == {"rate_limited": "60"}.get(code)
    [line] = [each for each in caplog.messages if "identity.connect.failed" in each]
    assert f"code={code} " in line
    assert not [secret for secret in SECRETS if secret in caplog.text]
    assert not LinkedIdentity.objects.exists()
    assert hand_in(browser).status_code >= 400
    assert service.calls("request") == 1
    service.answers.clear()
    assert hand_in(browser, "CNX-AB12-CD35").status_code == 302


KYC_WITHOUT_STATUS = {"profile": {}, "kyc": {"kyc_level": "level_2"}}
REFUSED_AFTER_THE_ANSWER: list[tuple[dict[str, Any], str, int]] = [
    ({}, "connect_answer_refused", 403),
    ({"user_id": "bobs"}, "subject_taken", 403),
    ({"data": KYC_WITHOUT_STATUS}, "malformed_answer", 502),
]


@pytest.mark.parametrize(("changes", "code", "status"), REFUSED_AFTER_THE_ANSWER)
@pytest.mark.parametrize("number", ["req_7f3a", "req 7 code=none"])
def test_the_services_own_number_helps_support(
    service,
    browser,
    monkeypatch,
    caplog,
    changes,
    code,
    status,
    number,
):
    """One that is no code is kept and not shown: a program reads the lines of the log."""
    make_identity(make_user("bob"), subject="bobs")
    if code == "connect_answer_refused":
        monkeypatch.setattr(IdentityPolicy, "may_accept_connect_answer", lambda *_: 0)
    service.connect = {"request_id": number, **changes}

    page = refused(hand_in(browser), code, status)

    how_to_move_it = "sign in to it and disconnect there first."
    assert (how_to_move_it in page) is (code == "subject_taken")
    is_shown = number == "req_7f3a"
    [line] = [each for each in caplog.messages if "identity.connect.failed" in each]
    assert (f"· <code>{number}</code>" in page) is is_shown
    assert (f"request_id={number}" in line) is is_shown
    assert "code=none" not in page + caplog.text
    kept = number if is_shown or code != "malformed_answer" else ""
    assert ConnectRedemption.objects.get().request_id == kept


def test_a_link_to_get_verified(service, browser):
    """``kyc_url`` is a link if it is safe to follow, and never anything else."""
    beside = {"kyc_required": True, "kyc_url": "https://kyc.example/?a=1&b=2"}
    service.answers["request"] = refusal("POA_REQUIRED", "403 Forbidden", **beside)
    page = refused(hand_in(browser), "verification_policy_not_met", 403)
    assert 'href="https://kyc.example/?a=1&amp;b=2"' in page
    assert "proof of address" in page
    beside["kyc_url"] = "javascript:alert(1)"
    service.answers["request"] = refusal("poa_required", "403 Forbidden", **beside)
    page = hand_in(browser, "CNX-AB12-CD35").content.decode()
    assert "javascript" not in page
    assert "proof of address" in page
    service.answers["request"] = refusal("POA_REQUIRED", "403 Forbidden")
    response = hand_in(browser, "CNX-AB12-CD36")
    assert "proof of address" in refused(response, "verification_policy_not_met", 403)


def test_a_service_that_is_not_there(service, browser):
    """The code was not sent, so it stays good. Nobody else's becomes so."""
    later = timezone.now() + timedelta(hours=1)
    ConnectRedemption.objects.create(code_digest="spent", expires_at=later)
    beyond = service.settings(BASE_URL="http://127.0.0.1:9/api/v1", TIMEOUT=5)
    with override_settings(DJANGO_IDENTITY=beyond):
        for _ in range(7):
            page = refused(hand_in(browser), "service_unavailable", 503)
            assert "your code was not sent" in page
    assert ConnectRedemption.objects.get().code_digest == "spent"
    assert hand_in(browser).status_code == 302


def test_a_code_that_somebody_else_sends_again_proves_nothing(service, browser):
    beside = {"kyc_required": True, "kyc_url": "https://kyc.example/now"}
    service.answers["request"] = refusal("POA_REQUIRED", "403 Forbidden", **beside)
    refused(hand_in(browser), "verification_policy_not_met", 403)
    eve = make_identity(make_user("eve"), subject="another").user
    page = refused(hand_in(browser_of(eve)), "connect_code_used", 409)
    assert "/identity/account/" in page
    assert "kyc.example" not in page
    assert service.calls("request") == 1


def test_a_code_sent_again_after_disconnecting_is_no_success(service, browser):
    hand_in(browser)
    LinkedIdentity.objects.all().delete()
    refused(hand_in(browser), "connect_code_used", 409)
    assert not LinkedIdentity.objects.exists()


@pytest.mark.parametrize("atomic_requests", [False, True])
def test_after_a_crash_a_code_is_never_sent_again(
    service,
    browser,
    monkeypatch,
    atomic_requests,
):
    monkeypatch.setitem(connection.settings_dict, "ATOMIC_REQUESTS", atomic_requests)
    browser.raise_request_exception = False
    with monkeypatch.context() as patch:
        patch.setattr(LinkedIdentity, "save", lambda *_: 1 / 0)
        assert hand_in(browser).status_code == 500
    refused(hand_in(browser), "connect_code_used", 409)
    assert service.calls("request") == 1
    assert ConnectRedemption.objects.get().request_id == "req_1"


# What Django mails to the operators when it crashes on the way


@pytest.mark.usefixtures("as_in_production")
@pytest.mark.parametrize("caller", ["page", "json", "verb"])
@pytest.mark.parametrize(
    ("holder", "name"),
    [
        (connect, "salted_hmac"),
        (ServiceClient, "redeem_connect_code"),
        (LinkedIdentity, "save"),
    ],
    ids=["before it is claimed", "before it is sent", "after the answer"],
)
def test_a_crash_shows_no_code(
    service,
    browser,
    user,
    monkeypatch,
    holder,
    name,
    caller,
    caplog,
):
    """The operators' mail, wherever it happens. The verb hides its variables without a view too."""
    monkeypatch.setattr(holder, name, lambda *_args, **_kwargs: 1 / 0)
    if caller == "verb":
        with pytest.raises(UnexpectedError) as caught:
            flows.redeem_code(PASTED, user=user)
        # The first frame is the test's, which knows the code.
        raised: Any = (UnexpectedError, caught.value, caught.tb.tb_next)
        reporter = ExceptionReporter(None, *raised)
    else:
        address, how = "identity:connect", {}
        if caller == "json":
            address, how = "identity_api:connect", {"content_type": "application/json"}
        response = browser.post(reverse(address), {"connect_code": PASTED}, **how)
        assert response.status_code == 500
        nothing: Any = (None, None, None)
        reporter = ExceptionReporter(response.wsgi_request, *nothing, is_email=True)

    said = reporter.get_traceback_html() + reporter.get_traceback_text() + caplog.text
    assert "ZeroDivisionError" in caplog.text
    # Nor the application's secret, nor what the service said.
    assert not [part for part in (*SECRETS, "CD34", "ab12 cd34") if part in said]
