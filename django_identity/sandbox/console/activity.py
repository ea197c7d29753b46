"""What happens in the sandbox: requests, events and attempts, by person and sign-in."""

from dataclasses import dataclass, field
from datetime import datetime
from urllib.parse import urljoin, urlsplit

from django.urls import reverse

from django_identity.sandbox import request_log
from django_identity.sandbox.events.deliveries import Attempt
from django_identity.sandbox.models import Client, Delivery, User
from django_identity.sandbox.request_log import ReceivedRequest

SHOWN = 50
_LOOKED_AT = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One line of the list; ``is_good``: 2xx. ``address``: the console's page about it."""

    kind: str
    at: datetime
    title: str
    detail: str = ""
    outcome: str = ""
    is_good: bool = True
    is_failed: bool = False
    about: tuple[str, str]
    endpoint: str = ""
    address: str = ""


@dataclass(slots=True)
class Group:
    """The lines of one sign-in of a person at an application, or of what belongs to none."""

    user_id: str
    client_id: str
    entries: list[Entry] = field(default_factory=list)
    person: str = ""
    site: str = ""
    site_page: str = ""


def groups(*, with_good: bool) -> list[Group]:
    """Return the last lines in groups, the newest first; ``with_good``: those with 2xx too."""
    entries = [_request(each) for each in request_log.newest(_LOOKED_AT)]
    for delivery in Delivery.objects.order_by("-changed_at").select_related("client")[:SHOWN]:
        entries += _delivery(delivery)
    shown = [each for each in entries if with_good or not each.is_good]
    shown.sort(key=lambda each: each.at)
    made: list[Group] = []
    for entry in shown[-SHOWN:]:
        _group_for(entry, made).entries.append(entry)
    _name(made)
    return sorted(made, key=lambda each: each.entries[-1].at, reverse=True)


def _group_for(entry: Entry, made: list[Group]) -> Group:
    """Return the group of ``entry``. A look at the consent screen begins a new sign-in."""
    user_id, client_id = entry.about
    for group in reversed(made):
        # A page of the account belongs to the sign-in before or after it.
        is_page = bool(user_id) and "" in {client_id, group.client_id}
        if user_id == group.user_id and (client_id == group.client_id or is_page):
            asked = {each.endpoint for each in group.entries}
            if entry.endpoint == "authorize" and "token" in asked:
                break
            group.client_id = group.client_id or client_id
            return group
    made.append(Group(user_id, client_id))
    return made[-1]


def _name(made: list[Group]) -> None:
    """Add the names of people and sites, and where a site shows what it holds."""
    people = User.objects.in_bulk({each.user_id for each in made}, field_name="subject")
    clients = Client.objects.in_bulk({each.client_id for each in made}, field_name="client_id")
    for group in made:
        person, site = people.get(group.user_id), clients.get(group.client_id)
        group.person = person.full_name if person else group.user_id
        group.site = str(site) if site else group.client_id
        group.site_page = _site_page(site) if site else ""


def _site_page(client: Client) -> str:
    """Return the site's page about the person, by its callback's address, or its first page."""
    callback = next(iter(client.redirect_uris.split()), "")
    if urlsplit(callback).scheme not in {"http", "https"}:
        return ""
    return urljoin(callback, "../account/" if callback.endswith("/callback/") else "/")


def _request(received: ReceivedRequest) -> Entry:
    status, code = str(received.status or "no answer"), received.status or 999
    return Entry(
        kind="request",
        at=datetime.fromisoformat(received.time),
        title=f"{received.method} {received.path}",
        detail=f"{received.milliseconds:g} ms",
        outcome=f"{status} ({received.fault})" if received.fault else status,
        is_good=code < 300 and not received.fault,
        is_failed=code >= 400 or bool(received.fault),
        about=(received.user_id, received.client_id),
        endpoint=received.endpoint,
    )


def _delivery(delivery: Delivery) -> list[Entry]:
    """Return a line for the event, and one for each attempt to deliver it."""
    about = (delivery.user_id, delivery.client.client_id)
    page, name = reverse("console_delivery", args=[delivery.pk]), delivery.event_type
    made = delivery.created_at
    entries = [Entry(kind="event", at=made, title=name, about=about, address=page)]
    for attempt in (Attempt(**each) for each in delivery.attempts):
        entries.append(
            Entry(
                kind="delivery",
                at=datetime.fromisoformat(attempt.sent_at),
                title=f"{name} → {attempt.url or 'nowhere'}",
                detail=f"{attempt.problem} {attempt.milliseconds:g} ms".strip(),
                outcome=str(attempt.status or "no answer"),
                is_good=attempt.is_acknowledged,
                is_failed=not attempt.is_acknowledged,
                about=about,
                address=page,
            )
        )
    return entries
