"""Announce changes of a person to applications (spec: Events).

The rules of the service call ``announce`` in their own transaction. This module decides which
applications get the event.
"""

from django.db import transaction

from django_identity.sandbox.events import deliveries
from django_identity.sandbox.events.event import EventType, new_event
from django_identity.sandbox.models import Client, User


@transaction.atomic
def announce(
    kind: EventType, person: User, application: Client | None = None, **about: object
) -> None:
    """Queue an event of type ``kind`` about ``person``, which is sent after the commit.

    Each application gets its own event with its own id. An application without a webhook address
    gets none.

    Args:
        kind: the type of the event.
        person: the person.
        application: the only credential set that gets the event. Without it, all with a consent of
            the person get it; a deletion is also sent to those whose consent has ended.
        about: further members of the event's ``data``; JSON values only.
    """
    for client in [application] if application else _consented(person, kind):
        if client.webhook_url:
            event = new_event(kind, person.subject, about)
            deliveries.queue(event, client, user_id=person.subject)


def _consented(person: User, kind: EventType) -> list[Client]:
    """Return the credential sets that ``kind`` concerns."""
    # A new account has none, and each of its claims is announced: the join would cost far more.
    if not person.consent_set.exists():
        return []
    consents = person.consent_set.select_related("client").order_by("pk")
    if kind is not EventType.DATA_DELETION_REQUESTED:
        consents = consents.filter(revoked_at=None)
    return [consent.client for consent in consents]
