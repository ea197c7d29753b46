"""What happens in the sandbox: requests, events and attempts to deliver them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from django_identity.sandbox import request_log
from django_identity.sandbox.events.deliveries import Attempt
from django_identity.sandbox.models import Client, Delivery, DeliveryState, User
from django_identity.sandbox.request_log import ReceivedRequest

SHOWN = 50
_LOOKED_AT = 500
#: A sign-in is over if for so long nothing came of it.
_PAUSE = timedelta(minutes=1)


@dataclass(slots=True, kw_only=True)
class Entry:
    """One line of the list: a request, or an event, or an attempt to deliver it.

    ``is_good``: 2xx. ``state``: what an authorization carries, as a digest. ``sign_in``: the lines
    of one sign-in have the same number, all other lines one of their own.
    """

    at: datetime
    user_id: str
    client_id: str
    is_good: bool
    state: str = ""
    received: ReceivedRequest | None = None
    delivery: Delivery | None = None
    attempt: Attempt | None = None
    sign_in: int = 0
    person: User | None = None
    site: Client | None = None

    def has(self, text: str) -> bool:
        """Return whether ``text`` stands in anything of the line, in whatever letters."""
        return text.lower() in repr(self).lower()


def groups(*, with_good: bool, with_pages: bool, text: str) -> list[list[Entry]]:
    """Return the last lines, the newest first, those of one sign-in together.

    Args:
        with_good: those with 2xx too.
        with_pages: requests of people's pages too, which are not what a site asks for.
        text: what a line must have.
    """
    lines: list[Entry] = []
    for received in request_log.newest(_LOOKED_AT):
        if with_pages or received.is_of_site:
            lines.append(_request(received))
    deliveries = Delivery.objects.order_by("-changed_at").select_related("client")
    for delivery in deliveries[:_LOOKED_AT]:
        lines += _delivery(delivery)
    lines.sort(key=lambda line: line.at)
    _number(lines)

    people = User.objects.in_bulk(
        {line.user_id for line in lines},
        field_name="subject",
    )
    sites = Client.objects.in_bulk(
        {line.client_id for line in lines},
        field_name="client_id",
    )
    shown: dict[int, list[Entry]] = {}
    left = SHOWN
    for line in reversed(lines):
        line.person = people.get(line.user_id)
        line.site = sites.get(line.client_id)
        if left and (with_good or not line.is_good) and line.has(text):
            shown.setdefault(line.sign_in, []).append(line)
            left -= 1
    return list(shown.values())


def clear() -> None:
    """Forget what is over: requests, and deliveries that are not to be sent any more."""
    request_log.forget()
    over = (DeliveryState.DELIVERED, DeliveryState.FAILED)
    Delivery.objects.filter(state__in=over).delete()


def _number(lines: Sequence[Entry]) -> None:
    """Give the lines of one sign-in the same number.

    Its requests for authorization have the same ``state``. What follows concerns the same person
    and site; nothing tells it from a re-fetch at once after the sign-in.
    """
    latest: dict[str, Entry] = {}
    for number, line in enumerate(lines, start=1):
        pair = f"{line.user_id} {line.client_id}"
        before = latest.get(line.state or pair)
        line.sign_in = number
        if before is not None and (line.state or line.at - before.at < _PAUSE):
            line.sign_in = before.sign_in
        elif not line.state:
            continue
        latest[line.state] = line
        if line.user_id:
            latest[pair] = line


def _request(received: ReceivedRequest) -> Entry:
    state = ""
    if received.endpoint == "authorize":
        state = str(received.form.get("state", ""))
    return Entry(
        at=datetime.fromisoformat(received.time),
        user_id=received.user_id,
        client_id=received.client_id,
        is_good=not received.fault and (received.status or 500) < 300,
        state=state,
        received=received,
    )


def _delivery(delivery: Delivery) -> list[Entry]:
    """Return a line for the event, and one for each attempt to deliver it."""
    event = Entry(
        at=delivery.created_at,
        user_id=delivery.user_id,
        client_id=delivery.client.client_id,
        is_good=True,
        delivery=delivery,
    )
    lines = [event]
    for stored in delivery.attempts:
        attempt = Attempt(**stored)
        at = datetime.fromisoformat(attempt.sent_at)
        is_good = attempt.is_acknowledged
        lines.append(replace(event, at=at, is_good=is_good, attempt=attempt))
    return lines
