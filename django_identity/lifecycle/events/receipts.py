"""What stays of a subject: erasure receipts, and the links that were disconnected.

Only with the site's key can a row be matched with a subject.
"""

from collections.abc import Mapping
from datetime import datetime

from django.db.models import Q, QuerySet
from django.utils import timezone

from django_identity.conf import Application
from django_identity.lifecycle.events import rows
from django_identity.models import (
    SIGNS_IN,
    ErasureReceipt,
    FormerLink,
    LinkedIdentity,
    WebhookEvent,
    digest,
)
from django_identity.models.compiled import CompiledQuery

_erased_or_disconnected = CompiledQuery(
    lambda subject: (
        FormerLink.objects.filter(subject_digest=subject)
        .values_list("pk")
        .union(ErasureReceipt.objects.filter(subject_digest=subject).values_list("pk"))
    ),
    FormerLink._meta.get_field("subject_digest"),
)


def open_receipt(
    application: Application,
    subject: str,
    *,
    identity: LinkedIdentity | None,
    requested_at: datetime,
    event_id: str = "",
) -> ErasureReceipt:
    """Create a receipt, pending until ``close``. An event id that names the subject is left out.

    Without an identity, the account is the one from which the subject was disconnected.
    """
    subject_digest = digest(application.alias, application.environment, subject)
    link = identity or former_links(subject_digest).first()
    return ErasureReceipt.objects.create(
        application=application.alias,
        environment=application.environment,
        subject=subject,
        subject_digest=rows.keyed(subject_digest)[0],
        user_id=link.user_id if link else None,
        account_made=link is not None and link.account_made,
        event_id="" if subject in event_id else event_id,
        requested_at=requested_at,
        next_attempt_at=timezone.now(),
    )


def close(receipt: ErasureReceipt, *, counts: Mapping[str, int]) -> None:
    """Record that the erasure is done, and delete the subject from the receipt."""
    receipt.subject = receipt.error = ""
    receipt.user = receipt.next_attempt_at = None
    receipt.erased_at, receipt.counts = timezone.now(), dict(counts)
    receipt.save()


def of_subject(subject_digest: str) -> QuerySet[ErasureReceipt]:
    """The receipts of a subject, including pending ones."""
    return ErasureReceipt.objects.filter(subject_digest__in=rows.keyed(subject_digest))


def is_being_erased(subject_digest: str) -> bool:
    """Whether an erasure of the subject is pending."""
    return of_subject(subject_digest).filter(erased_at=None).exists()


def empty_if_forgotten(event: WebhookEvent, *, is_linked: bool) -> None:
    """Empty the event if its subject was erased or disconnected, and not linked again before it.

    The caller saves the event. A sign-in of the subject that is in progress still finds it by a
    digest that needs the site's key.
    """
    keys = rows.keyed(event.subject_digest)
    if is_linked:
        # The service's clock may be ahead of the site's. An event with a time-stamp before the
        # request's is older than the request, so the erasure covers it too.
        covered = covering(event.occurred_at) | Q(requested_at__gte=event.occurred_at)
        is_forgotten = of_subject(event.subject_digest).filter(covered).exists()
    else:
        is_forgotten = any(_erased_or_disconnected.rows(key) for key in keys)
    if is_forgotten:
        emptied = {**rows.EMPTIED, "subject_digest": keys[0], "next_attempt_at": None}
        for name, value in emptied.items():
            setattr(event, name, value)


def covering(moment: object) -> Q:
    """Receipts whose erasure covers ``moment``: pending, or done after it."""
    return Q(erased_at=None) | Q(erased_at__gte=moment)


def remember_link(identity: LinkedIdentity) -> None:
    """Keep a digest of the identity's subject, if the identity signed its person in.

    A link by code is forgotten: it may be another person's.
    """
    if identity.linked_via not in SIGNS_IN:
        return
    FormerLink.objects.update_or_create(
        user_id=identity.user_id,
        subject_digest=rows.keyed(identity.subject_digest)[0],
        defaults={
            "application": identity.application,
            "environment": identity.environment,
            "linked_via": identity.linked_via,
            "account_made": identity.account_made,
        },
    )


def former_links(subject_digest: str) -> QuerySet[FormerLink]:
    """The former links of a subject, the newest first."""
    former = FormerLink.objects.filter(subject_digest__in=rows.keyed(subject_digest))
    return former.order_by("-updated_at", "-pk")
