"""Erasure receipts. Only with the site's key can a receipt be matched with a subject."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime

from django.conf import settings
from django.db.models import Q, QuerySet
from django.utils import timezone
from django.utils.crypto import salted_hmac

from django_identity.models import ErasureReceipt, LinkedIdentity, digest

SALT = "django_identity.erasure_receipt"


def keyed(subject_digest: str) -> list[str]:
    """The receipt's digest of a subject under the current key, then under each older key."""
    keys: Iterator[str] = map(str, (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS))
    return [
        salted_hmac(SALT, subject_digest, secret=key, algorithm="sha256").hexdigest()
        for key in keys
    ]


def open_receipt(
    *,
    application: str,
    environment: str,
    subject: str,
    identity: LinkedIdentity | None,
    requested_at: datetime,
    event_id: str = "",
) -> ErasureReceipt:
    """Create a receipt, pending until ``close``. An event id that names the subject is left out."""
    return ErasureReceipt.objects.create(
        application=application,
        environment=environment,
        subject=subject,
        subject_digest=keyed(digest(application, environment, subject))[0],
        user_id=identity.user_id if identity else None,
        account_made=identity is not None and identity.account_made,
        event_id="" if subject in event_id else event_id,
        requested_at=requested_at,
        next_attempt_at=timezone.now(),
    )


def close(receipt: ErasureReceipt, *, counts: Mapping[str, int]) -> None:
    """Record that the erasure is done, and delete the subject from the receipt."""
    receipt.subject = ""
    receipt.user = None
    receipt.erased_at = timezone.now()
    receipt.next_attempt_at = None
    receipt.error = ""
    receipt.counts = dict(counts)
    receipt.save()


def of_subject(subject_digest: str) -> QuerySet[ErasureReceipt]:
    """The receipts of a subject, including pending ones."""
    return ErasureReceipt.objects.filter(subject_digest__in=keyed(subject_digest))


def is_being_erased(subject_digest: str) -> bool:
    """Whether an erasure of the subject is pending."""
    return of_subject(subject_digest).filter(erased_at=None).exists()


def covering(moment: object) -> Q:
    """Receipts whose erasure covers ``moment``: pending, or done after it."""
    return Q(erased_at=None) | Q(erased_at__gte=moment)


def covering_event(at: object) -> Q:
    """Receipts whose erasure covers an event of time ``at``, by the site's or the service's clock.

    The service's clock may be ahead. An event is still older than the request if its time-stamp is
    older than the request's time-stamp.
    """
    return covering(at) | Q(requested_at__gte=at)
