"""Stored events of a subject, and digests that only the site's key can match with a subject."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.conf import settings
from django.db.models import Case, F, QuerySet, When
from django.utils.crypto import salted_hmac

from django_identity.handlers import EventType
from django_identity.models import WebhookEvent

SALT = "django_identity.erasure_receipt"
#: The columns of an emptied event. The digest of its id and its type stay.
EMPTIED: Mapping[str, Any] = {
    "body_digest": "",
    "payload": None,
    "subject": "",
    "subject_digest": "",
    "event_id": "",
    "error": "",
    "history": [],
}

#: Handlers that wait for an emptied event no longer run, because it is about nobody.
_NO_HANDLERS = Case(
    When(event_type=EventType.DATA_DELETION_REQUESTED, then=F("next_attempt_at")), default=None
)


def keyed(subject_digest: str) -> list[str]:
    """The digest of a subject under the site's current key, then under each older key."""
    return [
        salted_hmac(SALT, subject_digest, secret=str(key), algorithm="sha256").hexdigest()
        for key in (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)
    ]


def since(subject_digest: str, moment: datetime) -> QuerySet[WebhookEvent]:
    """The subject's events that were received at ``moment`` or later."""
    digests = [subject_digest, *keyed(subject_digest)]
    return WebhookEvent.objects.filter(subject_digest__in=digests, received_at__gte=moment)


def empty(rows: QuerySet[WebhookEvent]) -> int:
    """Delete subject and payload from these events. The digests stay."""
    return rows.update(**EMPTIED, next_attempt_at=_NO_HANDLERS)


def unname(subject_digest: str) -> None:
    """Empty the subject's events. A sign-in in progress finds them by their keyed digest."""
    events = WebhookEvent.objects.filter(subject_digest=subject_digest)
    emptied = {**EMPTIED, "subject_digest": keyed(subject_digest)[0]}
    events.update(**emptied, next_attempt_at=_NO_HANDLERS)
