"""A crash on the way: what Django mails to a site's operators shows no code."""

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from django.views.debug import ExceptionReporter

from django_identity import conf
from django_identity.lifecycle import connect
from django_identity.models import LinkedIdentity
from django_identity.service import ServiceClient
from tests.fake_service import FakeService
from tests.views.connect.pages import PASTED, SECRETS

pytestmark = pytest.mark.django_db(transaction=True)


MOMENTS = pytest.mark.parametrize(
    ("holder", "name"),
    [(connect, "salted_hmac"), (ServiceClient, "redeem_connect_code"), (LinkedIdentity, "save")],
    ids=["before it is claimed", "before it is sent", "after the answer"],
)


def shows_no_code(reporter: ExceptionReporter) -> None:
    """Nor the application's secret, nor what the service said, in any frame's variables."""
    report = reporter.get_traceback_html() + reporter.get_traceback_text()
    assert "ZeroDivisionError" in report
    assert "connect.py" in report
    assert not [secret for secret in (*SECRETS, "CD34", "ab12 cd34") if secret in report]


@pytest.mark.parametrize("kind", ["page", "json"])
@MOMENTS
def test_a_crash_shows_no_code(
    service: FakeService, browser: Client, monkeypatch: pytest.MonkeyPatch,
    holder: object, name: str, kind: str,
) -> None:  # fmt: skip
    """The operators' mail, wherever it happens."""
    browser.raise_request_exception = False
    monkeypatch.setattr(holder, name, lambda *_args, **_kwargs: 1 / 0)
    address = reverse("identity:connect" if kind == "page" else "identity_api:connect")
    content_type = {} if kind == "page" else {"content_type": "application/json"}
    response = browser.post(address, {"connect_code": PASTED}, **content_type)
    assert response.status_code == 500
    shows_no_code(ExceptionReporter(response.wsgi_request, *response.exc_info, is_email=True))


@MOMENTS
def test_a_crash_of_a_sites_own_call_shows_no_code(
    service: FakeService, user: User, monkeypatch: pytest.MonkeyPatch, holder: object, name: str
) -> None:
    """The verb looks after what it was given: no view around it hides its variables."""
    monkeypatch.setattr(holder, name, lambda *_args, **_kwargs: 1 / 0)
    with pytest.raises(ZeroDivisionError) as caught:
        connect.redeem(conf.application(), PASTED, user=user)
    # The first frame is the test's, which knows the code.
    shows_no_code(ExceptionReporter(None, ZeroDivisionError, caught.value, caught.tb.tb_next))
