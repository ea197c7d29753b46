"""What happens to a person that applications are told of (spec: Events).

The one seam between the rules of the service and its webhooks: a rule announces what it did, in its
own transaction; here it is decided who hears of it.
"""

from django.db import transaction

from django_identity.sandbox.events import deliveries
from django_identity.sandbox.events.event import EventType, new_event
from django_identity.sandbox.models import Client, User


@transaction.atomic
def announce(
    kind: EventType, person: User, application: Client | None = None, **about: object
) -> None:
    """Say that ``kind`` happened to ``person``; it is sent once the transaction commits.

    Each application gets an event of its own, with an id of its own; one without a webhook address
    gets none.

    Args:
        kind: what happened.
        person: to whom.
        application: the one credential set that hears of it; without it every one that the person
            has consented to does, and of a deletion those whose consent has ended as well.
        about: what the event's ``data`` says besides the user id; JSON values only.
    """
    for client in [application] if application else _consented(person, kind):
        if client.webhook_url:
            event = new_event(kind, person.subject, about)
            deliveries.queue(event, client, user_id=person.subject)


def _consented(person: User, kind: EventType) -> list[Client]:
    """Return the credential sets that ``kind`` concerns."""
    consents = person.consent_set.select_related("client").order_by("pk")
    if kind is not EventType.DATA_DELETION_REQUESTED:
        consents = consents.filter(revoked_at=None)
    return [consent.client for consent in consents]
