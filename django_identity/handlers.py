"""``@on_event("kyc.verified")``: the site's own code for every event of a type.

A handler gets the ``WebhookEvent`` in a task, in its own transaction, after the event was stored
and applied. If a handler raises an error, it is tried twelve times within a day. The error
rolls back only the handler's own changes, and other handlers do not wait. A handler must be
idempotent: if the process dies before the commit, the handler runs again.
"""

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, TypeVar

from django_identity.exceptions import ConfigurationError

if TYPE_CHECKING:
    from django_identity.models import WebhookEvent


class EventType(StrEnum):
    """The event types of the spec. An event of another type is stored and ignored."""

    KYC_VERIFIED = "kyc.verified"
    KYC_REJECTED = "kyc.rejected"
    CONSENT_GRANTED = "consent.granted"
    CONSENT_REVOKED = "consent.revoked"
    CLAIM_ISSUED = "claim.issued"
    CLAIM_REVOKED = "claim.revoked"
    DATA_DELETION_REQUESTED = "data.deletion_requested"


KYC_TYPES = frozenset[str]({EventType.KYC_VERIFIED, EventType.KYC_REJECTED})
CLAIM_TYPES = frozenset[str]({EventType.CLAIM_ISSUED, EventType.CLAIM_REVOKED})
KNOWN_TYPES = frozenset[str](EventType)
# Two types have other names in the service's policy text.
_OTHER_NAMES: dict[str, str] = {
    "consent_revoked": EventType.CONSENT_REVOKED,
    "user_deleted": EventType.DATA_DELETION_REQUESTED,
}


def canonical(event_type: str) -> str:
    """The spec's name for ``event_type``, which may be a name from the policy text."""
    return str(_OTHER_NAMES.get(event_type, event_type))


Handler = Callable[["WebhookEvent"], object]
H = TypeVar("H", bound=Handler)

_registry: dict[str, dict[str, Handler]] = {}


def on_event(event_type: str, *, name: str = "") -> Callable[[H], H]:
    """Register a handler for events of ``event_type``, which may be a type outside the spec.

    The event records the ``name`` of each handler that succeeded; the default is the function's
    path. Do not change a name while events are waiting, because the handler would run again. Raises
    ``ConfigurationError`` if another handler of the type has the same name, because only one of the
    two would run.
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
    """The site's handlers for ``event_type`` by name, in the order of their registration."""
    return dict(_registry.get(event_type, {}))


def forget(name: str) -> None:
    """Unregister a handler from every type. For tests."""
    for registered in _registry.values():
        registered.pop(name, None)
