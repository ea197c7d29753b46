"""Subjects that were disconnected. Only with the site's key can one be matched with a subject."""

from __future__ import annotations

from django.db.models import QuerySet

from django_identity.lifecycle.events.keyed_digests import keyed
from django_identity.models import SIGNS_IN, FormerLink, LinkedIdentity


def remember(identity: LinkedIdentity) -> None:
    """Keep a digest of the identity's subject, if the identity signed its person in.

    A link by code is forgotten: it may be another person's.
    """
    if identity.linked_via not in SIGNS_IN:
        return
    FormerLink.objects.update_or_create(
        user_id=identity.user_id,
        subject_digest=keyed(identity.subject_digest)[0],
        defaults={
            "application": identity.application,
            "environment": identity.environment,
            "linked_via": identity.linked_via,
            "account_made": identity.account_made,
        },
    )


def of_subject(subject_digest: str) -> QuerySet[FormerLink]:
    """The former links of a subject, the newest first."""
    former = FormerLink.objects.filter(subject_digest__in=keyed(subject_digest))
    return former.order_by("-updated_at", "-pk")
