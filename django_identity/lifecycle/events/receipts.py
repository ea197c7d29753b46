"""Erasure receipts: proof that it was done; only the site's key connects them with a subject."""

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
    """The receipt's digest of a subject under the site's key, then under each older key."""
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
    """A receipt that is pending until ``close``. An event id that names the subject is not kept."""
    return ErasureReceipt.objects.create(
        application=application,
        environment=environment,
        subject=subject,
        subject_digest=keyed(digest(application, environment, subject))[0],
        user_id=identity.user_id if identity else None,
        event_id="" if subject in event_id else event_id,
        requested_at=requested_at,
        next_attempt_at=timezone.now(),
    )


def close(receipt: ErasureReceipt, *, counts: Mapping[str, int]) -> None:
    """Write down that it is done, and forget of whom."""
    receipt.subject = ""
    receipt.user = None
    receipt.erased_at = timezone.now()
    receipt.next_attempt_at = None
    receipt.error = ""
    receipt.counts = dict(counts)
    receipt.save()


def of_subject(subject_digest: str) -> QuerySet[ErasureReceipt]:
    """The receipts of a subject, pending ones too."""
    return ErasureReceipt.objects.filter(subject_digest__in=keyed(subject_digest))


def is_being_erased(subject_digest: str) -> bool:
    """Whether an erasure of the subject was asked for and is not done."""
    return of_subject(subject_digest).filter(erased_at=None).exists()


def covering(moment: object) -> Q:
    """Receipts of erasures that what happened at ``moment`` belongs to: pending, or done since."""
    return Q(erased_at=None) | Q(erased_at__gte=moment)


def covering_event(at: object) -> Q:
    """Those that an event of that time belongs to: by our clock, or by the service's own.

    Its clock may be ahead of ours, but what it says came before the request is from before it.
    """
    return covering(at) | Q(requested_at__gte=at)
