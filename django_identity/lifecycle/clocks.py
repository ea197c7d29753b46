"""Which of two times counts, where two clocks told them.

The clocks of the service and of this site may differ by five minutes. Within that time nobody knows
what came first, so a withdrawal wins, and whatever brings something is asked for again. Two times
of one clock are compared as they are.
"""

from datetime import datetime, timedelta

from django_identity.event_types import kind_of
from django_identity.models import LinkedIdentity, WebhookEvent

CLOCK_SKEW = timedelta(minutes=5)
#: Credentials name whole seconds.
A_SECOND = timedelta(seconds=1)


def may_be_newer(moment: datetime, *, than: datetime) -> bool:
    """Whether ``moment`` is newer than another clock's time, or seems older by the skew at most."""
    return moment >= than - CLOCK_SKEW


def counts(event: WebhookEvent, identity: LinkedIdentity) -> bool:
    """Whether the newest sign-in or code leaves the event standing.

    One that takes something away counts for the skew longer.
    """
    if kind_of(event.event_type).takes_away:
        return may_be_newer(event.occurred_at, than=identity.arrived_at)
    return event.occurred_at >= identity.arrived_at


def may_bring_something(event: WebhookEvent, identity: LinkedIdentity) -> bool:
    """Whether the event seems older than what it would change, but by the skew at most.

    Its own statement does not count then. But the service may know something newer than the site
    does, and is asked: else a verified person would wait for the next day.
    """
    if identity.connect_only or not kind_of(event.event_type).makes_due:
        return False
    return may_be_newer(event.occurred_at, than=identity.arrived_at)


def revokes_since(event: WebhookEvent, identity: LinkedIdentity) -> datetime | None:
    """When a revocation counts from. None if the stored credential is certainly younger.

    The event's time is at most that of its receipt, but a credential's is the service's own. If the
    service's clock is ahead, the stored credential seems younger than a revocation that came after
    it, and would prove the claim again if the service sent it once more. So within the skew the
    revocation comes a second after the credential.
    """
    issued_at = identity.credential_issued_at
    if issued_at is None:
        return event.occurred_at
    if not may_be_newer(event.occurred_at, than=issued_at):
        return None
    return max(event.occurred_at, issued_at + A_SECOND)
