"""How a sign-in that goes wrong ends: the same for every kind of bad input."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.http import HttpResponse

from django_identity.models import LinkedIdentity

SECRETS = ("at-secret", "rt-secret", "a-code", "a-client-secret", "ada@example.org", "subject-1")


def refused(response: HttpResponse, code: str, caplog: pytest.LogCaptureFixture) -> None:
    """A page that says what to do, one line in the log, no secret in either, nobody made."""
    assert 400 <= response.status_code < 600
    page = response.content.decode()
    assert f"<code>{code}</code>" in page
    lines = [r.getMessage() for r in caplog.records if "identity.sign_in.failed" in r.getMessage()]
    assert len(lines) == 1
    assert f"code={code} " in lines[0]
    everything = page + caplog.text
    assert not [secret for secret in SECRETS if secret in everything]


def nobody_was_made() -> bool:
    return not User.objects.exists() and not LinkedIdentity.objects.exists()
