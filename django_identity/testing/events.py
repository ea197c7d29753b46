"""Webhook events: signed and delivered to the site."""

import hashlib
import hmac
import json
import secrets
from datetime import datetime
from typing import Any

from django.http import HttpResponseBase
from django.test import Client
from django.utils import timezone

from django_identity import conf
from django_identity.models import LinkedIdentity
from django_identity.testing.browser import path_here
from django_identity.testing.sandbox import SandboxPerson
from django_identity.web.pages import address_of


def deliver_event(
    event_type: str,
    person: SandboxPerson | LinkedIdentity | str,
    *,
    event_id: str = "",
    at: datetime | None = None,
    **data: Any,
) -> HttpResponseBase:
    """Deliver an event about ``person`` to the site's webhook, signed with its secret.

    ``person``: a person of the sandbox, a linked identity, or a subject. ``data``: further members
    of the event's data. Raises ``AssertionError`` if the site refuses the event.
    """
    registered = conf.application()
    if not registered.webhook_secrets:
        raise AssertionError("DJANGO_IDENTITY has no WEBHOOK_SECRETS")
    members = {
        "event_type": event_type,
        "event_id": event_id or f"evt_{secrets.token_hex(8)}",
        "timestamp": (at or timezone.now()).isoformat(),
        "data": {"user_id": _subject_of(person), **data},
    }
    body = json.dumps(members).encode()
    secret = registered.webhook_secrets[0].reveal()
    signature = hmac.new(secret.encode(), body, hashlib.sha256)
    response = Client().post(
        path_here(address_of("webhook")),
        body,
        content_type="application/json",
        headers={"x-webhook-signature": signature.hexdigest()},
        secure=True,
    )
    if response.status_code != 200:
        raise AssertionError(f"the webhook answered {response.status_code}")
    return response


def _subject_of(person: SandboxPerson | LinkedIdentity | str) -> str:
    if isinstance(person, LinkedIdentity):
        return person.subject
    if isinstance(person, SandboxPerson):
        return person.user_id
    return person
