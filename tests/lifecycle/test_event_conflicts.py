"""The same event id with another body: refused a place, logged without content, counted."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from django_identity.lifecycle.erasure import erasure
from django_identity.lifecycle.operators.overview import overview_of
from django_identity.models import LinkedIdentity, WebhookEvent
from tests.deliveries import event_body, post
from tests.lifecycle.test_events import linked

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("published")]


def conflicts() -> int:
    seen = overview_of(application="default", environment="test")
    return sum(day.count for day in seen.event_conflicts)


def test_another_body_is_refused_a_place(caplog: Any) -> None:
    """409; nothing is stored or applied, the log and the overview say so."""
    linked()
    assert post(event_body("claim.issued", event_id="evt_1")).status_code == 200
    caplog.set_level(logging.DEBUG)
    response = post(event_body("consent.revoked", event_id="evt_1", note="a note on ada"))
    assert (response.status_code, response.json()["error"]["code"]) == (409, "event_conflict")
    assert list(WebhookEvent.objects.values_list("event_type", flat=True)) == ["claim.issued"]
    assert LinkedIdentity.objects.get().consent == "granted"
    (warning,) = [record for record in caplog.records if record.name == "django_identity"]
    assert warning.levelno == logging.WARNING
    assert "code=event_conflict" in warning.getMessage()
    assert not [name for name in ("subject-1", "ada", "evt_1") if name in caplog.text]
    assert conflicts() == 1


def test_the_same_body_is_a_repeat_under_every_key_in_use(settings: Any) -> None:
    """Also after the site's key was replaced, while the older one is listed."""
    body = event_body("claim.issued")
    assert post(body).status_code == 200
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = "another-key", [settings.SECRET_KEY]
    assert post(body).status_code == 200
    assert (WebhookEvent.objects.count(), conflicts()) == (1, 0)


def test_applications_do_not_share_ids(settings: Any) -> None:
    """The same id under another application is another event."""
    shared = settings.DJANGO_IDENTITY["default"]
    settings.DJANGO_IDENTITY = {"default": shared, "second": shared}
    assert post(event_body("claim.issued", event_id="evt_1")).status_code == 200
    other = event_body("claim.revoked", event_id="evt_1")
    assert post(other, application="second").status_code == 200
    assert conflicts() == 0


def test_an_erasure_empties_the_digest() -> None:
    """Nobody can test a guess of the content; the id is still recognised."""
    linked()
    post(event_body("kyc.verified", event_id="evt_1", kyc_level="level_2"))
    post(event_body("data.deletion_requested"))
    assert erasure.retry_pending() == 1
    assert set(WebhookEvent.objects.values_list("body_digest", flat=True)) == {""}
    assert post(event_body("kyc.rejected", event_id="evt_1")).status_code == 200
    assert WebhookEvent.objects.count() == 2
