"""A crash on the way: what Django mails to a site's operators shows no code."""

from typing import Any

import pytest
from django.urls import reverse
from django.views.debug import ExceptionReporter

from django_identity import flows
from django_identity.exceptions import UnexpectedError
from django_identity.lifecycle.arriving import connect
from django_identity.models import LinkedIdentity
from django_identity.service import ServiceClient
from tests.views.connect.pages import PASTED, SECRETS

pytestmark = pytest.mark.django_db(transaction=True)


def shows_no_code(report: str) -> None:
    """Nor the application's secret, nor what the service said."""
    for secret in (*SECRETS, "CD34", "ab12 cd34"):
        assert secret not in report


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
    service, browser, user, monkeypatch, holder, name, caller, caplog
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
    shows_no_code(reporter.get_traceback_html() + reporter.get_traceback_text())
    assert "ZeroDivisionError" in caplog.text
    shows_no_code(caplog.text)
