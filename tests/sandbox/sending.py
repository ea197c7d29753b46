"""Events that nothing caused, and what came of them."""

from typing import Any

from tests.sandbox.driver import Application
from tests.sandbox.receiver import until


def send(application: Application, **event: object) -> dict[str, Any]:
    """Let the sandbox send an event that nothing caused."""
    members = {"client_id": application.client_id, "event_type": "kyc.verified", **event}
    delivery: dict[str, Any] = application.sandbox.control("POST", "events", **members)
    return delivery


def settled(application: Application, *, attempts: int = 1) -> dict[str, Any]:
    """Return the one delivery once so many attempts are over."""
    until(lambda: len(application.deliveries()[0]["attempts"]) >= attempts)
    return application.deliveries()[0]
