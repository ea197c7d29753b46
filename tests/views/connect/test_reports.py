"""A crash on the way: what Django mails to a site's operators shows no code."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from django.core.signals import got_request_exception
from django.http import HttpRequest
from django.test import Client
from django.urls import reverse
from django.views.debug import ExceptionReporter

from django_identity.lifecycle import connect
from django_identity.models import LinkedIdentity
from django_identity.service import ServiceClient
from tests.fake_service import FakeService
from tests.views.connect.pages import PASTED, SECRETS

pytestmark = pytest.mark.django_db(transaction=True)


@contextmanager
def reports() -> Iterator[list[str]]:
    """The operators' mails of the requests that fail meanwhile, every frame with its variables."""
    written: list[str] = []

    def write(request: HttpRequest, **_kwargs: object) -> None:
        reporter = ExceptionReporter(request, *sys.exc_info(), is_email=True)
        written.append(reporter.get_traceback_html() + reporter.get_traceback_text())

    got_request_exception.connect(write)
    try:
        yield written
    finally:
        got_request_exception.disconnect(write)


@pytest.mark.parametrize("kind", ["page", "json"])
@pytest.mark.parametrize(
    ("holder", "name"),
    [(connect, "salted_hmac"), (ServiceClient, "redeem_connect_code"), (LinkedIdentity, "save")],
    ids=["before it is claimed", "before it is sent", "after the answer"],
)
def test_a_crash_shows_no_code(
    service: FakeService, browser: Client, monkeypatch: pytest.MonkeyPatch,
    holder: object, name: str, kind: str,
) -> None:  # fmt: skip
    """Wherever it happens; nor the application's secret, nor what the service said."""
    browser.raise_request_exception = False
    monkeypatch.setattr(holder, name, lambda *_args, **_kwargs: 1 / 0)
    address = reverse("identity:connect" if kind == "page" else "identity_api:connect")
    content_type = {} if kind == "page" else {"content_type": "application/json"}
    with reports() as written:
        response = browser.post(address, {"connect_code": PASTED}, **content_type)
    assert response.status_code == 500
    (report,) = written
    assert "ZeroDivisionError" in report
    assert "connect.py" in report
    assert not [secret for secret in (*SECRETS, "CD34", "ab12 cd34") if secret in report]
