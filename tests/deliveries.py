"""Deliveries as the service makes them: a signed body, posted to the webhook."""

import hashlib
import hmac
import itertools
import json
from datetime import datetime
from typing import Any

from django.http import HttpResponse, HttpResponseBase
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from django_identity.testing.events import deliver_event

SECRET = "a-webhook-secret-for-tests-alone"
_numbers = itertools.count(1)


def signed(body: bytes, *, secret: str = SECRET) -> str:
    return hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


def event_body(
    event_type: str,
    *,
    subject: str = "subject-1",
    event_id: str | None = None,
    at: datetime | None = None,
    **about: Any,
) -> bytes:
    members = {
        "event_type": event_type,
        "event_id": event_id or f"evt_{next(_numbers)}",
        "timestamp": (at or timezone.now()).isoformat(),
        "data": {"user_id": subject, **about},
    }
    return json.dumps(members).encode()


def post(
    body: bytes,
    *,
    signature: str | None = None,
    client: Client | None = None,
    address: str = "",
) -> HttpResponse:
    """Deliver ``body``, signed rightly unless another signature is given."""
    return (client or Client()).post(
        address or reverse("identity:webhook"),
        data=body,
        content_type="application/json",
        headers={
            "x-webhook-signature": signed(body) if signature is None else signature,
        },
    )


def deliver(
    event_type: str,
    *,
    subject: str = "subject-1",
    **about: Any,
) -> HttpResponseBase:
    """Make an event and deliver it by the testing kit; it must be acknowledged."""
    return deliver_event(event_type, subject, **about)
