"""Deletion of a person's data, on their own request."""

from django.db import transaction

from django_identity.sandbox.consents import consents
from django_identity.sandbox.events.announcing import announce
from django_identity.sandbox.events.event import EventType
from django_identity.sandbox.instruments import clock
from django_identity.sandbox.models import User


@transaction.atomic
def request(user: User) -> bool:
    """Mark the account for deletion, end all access, and announce it.

    Consents, tokens, Connect codes and notices go with it. Every application that ever had the
    person's consent hears of it. The account cannot be signed in to or read any more.

    Returns:
        Whether this is the first request.
    """
    marked = User.objects.filter(pk=user.pk, deletion_requested_at=None)
    if not marked.update(deletion_requested_at=clock.now()):
        return False
    consents.revoke_all(user)
    user.connectcode_set.all().delete()
    user.notice_set.all().delete()
    announce(EventType.DATA_DELETION_REQUESTED, user)
    return True
