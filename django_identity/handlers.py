"""``@on_event("kyc.verified")``: a site's own code that runs for every event of a type.

A handler is called in a task after the event was stored and applied, with the ``WebhookEvent``, in
a transaction of its own. If it raises it is tried again, eight times over about a day, and neither
undoes what we did nor holds up another handler. It can be called twice for one event: a process may
die between its last line and the commit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, TypeVar

from django_identity.exceptions import ConfigurationError

if TYPE_CHECKING:
    from django_identity.models import WebhookEvent


class EventType(StrEnum):
    """The event types of the spec. An event may be of another type; it is stored and ignored."""

    KYC_VERIFIED = "kyc.verified"
    KYC_REJECTED = "kyc.rejected"
    CONSENT_GRANTED = "consent.granted"
    CONSENT_REVOKED = "consent.revoked"
    CLAIM_ISSUED = "claim.issued"
    CLAIM_REVOKED = "claim.revoked"
    DATA_DELETION_REQUESTED = "data.deletion_requested"


KYC_TYPES = frozenset[str]({EventType.KYC_VERIFIED, EventType.KYC_REJECTED})
CLAIM_TYPES = frozenset[str]({EventType.CLAIM_ISSUED, EventType.CLAIM_REVOKED})
#: Consent ends with these, whatever else they ask for.
WITHDRAWALS = frozenset[str]({EventType.CONSENT_REVOKED, EventType.DATA_DELETION_REQUESTED})
KNOWN_TYPES = frozenset[str](EventType)
# What the service's policy text calls two of them.
_OTHER_NAMES: dict[str, str] = {
    "consent_revoked": EventType.CONSENT_REVOKED,
    "user_deleted": EventType.DATA_DELETION_REQUESTED,
}


def canonical(event_type: str) -> str:
    """The spec's name of a type that may go by the name of the policy text."""
    return str(_OTHER_NAMES.get(event_type, event_type))


Handler = Callable[["WebhookEvent"], object]
H = TypeVar("H", bound=Handler)

_registry: dict[str, dict[str, Handler]] = {}


def on_event(event_type: str, *, name: str = "") -> Callable[[H], H]:
    """Register a handler of events of ``event_type``, one that the spec does not know included.

    ``name`` stands in the event's record of who is done with it; without one it is the function's
    path. Keep it while events wait: under a new name the handler would run again. Raises
    ``ConfigurationError`` if another handler of that type has this name: one of the two would never
    run.
    """

    def register(handler: H) -> H:
        path = name or f"{handler.__module__}.{handler.__qualname__}"
        registered = _registry.setdefault(canonical(event_type), {})
        if registered.setdefault(path, handler) is not handler:
            raise ConfigurationError(
                f"Two handlers of {event_type!r} are called {path!r}. Give one on_event(…, name=…)."
            )
        return handler

    return register


def handlers_of(event_type: str) -> Mapping[str, Handler]:
    """The site's handlers of that type by their names, in the order of their registration."""
    return dict(_registry.get(event_type, {}))


def forget(name: str) -> None:
    """Take a handler out again, under every type; for tests."""
    for registered in _registry.values():
        registered.pop(name, None)
