"""Which of two times counts, where two clocks told them.

The clocks of the service and of this site may differ by five minutes. Within that time nobody knows
what came first, so a withdrawal wins, and whatever brings something is asked for again. Two times
of one clock are compared as they are.
"""

from datetime import datetime, timedelta

from django.utils import timezone

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
    """When a revocation counts from. None if the stored credential is certainly younger."""
    issued_at = identity.credential_issued_at
    if issued_at is not None and not may_be_newer(event.occurred_at, than=issued_at):
        return None
    return _after_credential(event.occurred_at, issued_at)


def revoked_now(issued_at: datetime | None) -> datetime:
    """When a claim is revoked that the service lists as revoked now.

    ``issued_at``: the date of the newest credential, if it is known.
    """
    return _after_credential(timezone.now(), issued_at)


def _after_credential(moment: datetime, issued_at: datetime | None) -> datetime:
    """The time of a revocation, a second after the stored credential if that seems younger.

    The event's time is at most that of its receipt, and an answer's is this site's own, but a
    credential's is the service's. If the service's clock is ahead, the stored credential seems
    younger than a revocation that came after it, and would prove the claim again if the service, or
    a cache, sent it once more.
    """
    if issued_at is None:
        return moment
    return max(moment, issued_at + A_SECOND)
