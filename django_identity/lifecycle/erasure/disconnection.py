"""Disconnect an identity: delete it, empty its events, and remember a digest of its subject."""

from django.db.models import Q

from django_identity import database, signals
from django_identity.lifecycle import events
from django_identity.lifecycle.events import receipts, rows
from django_identity.models import LinkedIdentity


def disconnect(identity: LinkedIdentity, *, only: Q | None = None) -> bool:
    """Delete the identity with grant, claims and credential. The account stays.

    Returns False, and changes nothing, if the identity is gone or no longer fulfils ``only``.
    """
    with database.atomic():
        events.lock_subject(identity.subject_digest)
        # Before the identity's lock, as in the transaction of an event. SQLite needs a write first.
        rows.unname(identity.subject_digest)
        identities = LinkedIdentity.objects.select_for_update().filter(only or Q(), pk=identity.pk)
        locked = identities.first()
        if locked is None:
            database.connection().set_rollback(True)
            return False
        receipts.remember_link(locked)
        user = database.all_users().get(pk=locked.user_id)
        locked.delete()
        signals.announce(
            signals.identity_unlinked, LinkedIdentity, user=user, application=locked.application
        )
    return True
