"""Two orders that the explorer of ``tests/interleavings`` met, with a crash, on each database."""

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from django_identity import handlers
from django_identity.handlers import on_event
from django_identity.lifecycle import events, follow_up, linking, unfinished, upkeep
from django_identity.models import ErasureReceipt, LinkedIdentity, WebhookEvent
from django_identity.service.webhooks import Event
from tests import sign_in as browsing
from tests.deliveries import SECRET, event_body, post
from tests.factories import make_identity, make_user
from tests.fake_service import FakeService
from tests.pauses import held

pytestmark = pytest.mark.django_db(transaction=True)

LONGER_THAN_A_SIGN_IN = timedelta(hours=1, minutes=1)


@pytest.mark.parametrize("comes_again", [False, True])
def test_a_deletion_of_a_sign_up_that_dies_before_it_is_taken_back(
    service: FakeService, settings: Any, *, comes_again: bool
) -> None:
    """It found nobody, and the sign-up was refused because of it. Upkeep erases what is left."""
    settings.DJANGO_IDENTITY = service.settings(WEBHOOK_SECRETS=[SECRET])
    deletion = event_body("data.deletion_requested", subject=service.subject)
    browser = Client()
    state = browsing.begin(browser)
    places = [(linking, "_write_empty"), (unfinished, "take_back")]
    with held(lambda: browsing.come_back(browser, state), before=places) as sign_up:
        sign_up.wait()
        post(deletion)
        assert WebhookEvent.objects.get().outcome == "ignored"
        sign_up.go_on()
        sign_up.wait()
        sign_up.die()
        assert isinstance(sign_up.result.exception(), SystemExit)
    assert LinkedIdentity.objects.get().was_never_granted

    if comes_again:
        post(deletion)
    long_ago = timezone.now() - LONGER_THAN_A_SIGN_IN
    LinkedIdentity.objects.update(created_at=long_ago)
    WebhookEvent.objects.update(received_at=long_ago)
    upkeep.tend()
    assert not LinkedIdentity.objects.exists()
    assert not User.objects.filter(is_active=True).exists()
    assert ErasureReceipt.objects.get().erased_at is not None
    assert WebhookEvent.objects.get().outcome == "applied"


@pytest.mark.parametrize("worker_dies", [False, True])
def test_a_delivery_while_a_worker_has_the_event(*, worker_dies: bool) -> None:
    """A process died before it applied the event. Of two workers one runs the handler, once."""
    make_identity(make_user())
    body = event_body("consent.revoked")
    WebhookEvent.objects.stored(Event.parse(body))
    WebhookEvent.objects.update(next_attempt_at=timezone.now())
    subjects: list[str] = []
    on_event("consent.revoked", name="notes")(
        lambda event: subjects.append(event.subject)
    )
    try:
        with held(follow_up.retry_pending, before=[(events, "apply")]) as worker:
            worker.wait()
            assert post(body).status_code == 200
            assert follow_up.retry_pending() == 0
            (worker.die if worker_dies else worker.go_on)()
            worker.result.exception()
        assert len(subjects) == int(not worker_dies)
        # Ten minutes later nobody has the row.
        rows = WebhookEvent.objects.filter(next_attempt_at__isnull=False)
        assert rows.update(next_attempt_at=timezone.now()) == int(worker_dies)
        follow_up.retry_pending()
    finally:
        handlers.forget("notes")
    assert subjects == ["subject-1"]
