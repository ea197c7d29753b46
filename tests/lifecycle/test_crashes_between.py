"""An order that the explorer of ``tests/interleavings`` met, with a crash, on each database."""

import pytest
from django.utils import timezone

from django_identity import handlers
from django_identity.handlers import on_event
from django_identity.lifecycle.minute import follow_up
from django_identity.lifecycle.said import events
from django_identity.models import WebhookEvent
from django_identity.service.webhooks import Event
from tests.deliveries import event_body, post
from tests.factories import make_identity, make_user
from tests.pauses import held

pytestmark = pytest.mark.django_db(transaction=True)


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
