"""By how much two clocks may differ, and how two times compare.

The clocks of the service and of this site may differ by five minutes. Within that time the order is
unknown: an event that takes something away counts as newer, and the service is asked again for the
rest. Two times of one clock are compared as they are.
"""

from datetime import datetime, timedelta

from django.utils import timezone

from django_identity.credentials import VerifiedCredential
from django_identity.service.moments import bounded

#: The specification's ("Limits").
CREDENTIAL_LIFETIME = timedelta(hours=24)
CLOCK_SKEW = timedelta(minutes=5)
#: Credentials name whole seconds.
A_SECOND = timedelta(seconds=1)


def is_ahead(moment: datetime) -> bool:
    """Whether a stored time is from the future: a clock of this site was ahead, and is right again.

    So the time proves nothing, and anything else may be newer.
    """
    return moment > timezone.now() + CLOCK_SKEW


def may_be_newer(moment: datetime, *, than: datetime) -> bool:
    """Whether ``moment`` is newer than another clock's time, or seems older by the skew at most."""
    if is_ahead(than):
        return True
    return moment >= than - CLOCK_SKEW


def after_credential(moment: datetime, issued_at: datetime | None) -> datetime:
    """The time of a revocation, a second after the stored credential if that seems younger.

    An event's time is at most five minutes after its receipt (``WebhookEvent.of``), an answer's is
    this site's own, and a credential's is the service's. If the service's clock is ahead, a stored
    credential seems younger than a revocation that came after it, and would prove the claim again
    if the service, or a cache, sent it once more.
    """
    if issued_at is None:
        return moment
    return max(moment, issued_at + A_SECOND)


def revoked_from(moment: datetime, *, issued_at: datetime | None) -> datetime | None:
    """From when an event of that time revokes the claims of a credential. None if it is older.

    Both times are the service's, and a credential names whole seconds.
    """
    if issued_at is not None and moment < issued_at.replace(microsecond=0):
        return None
    return after_credential(moment, issued_at)


def is_younger(issued_at: datetime | None, revoked_at: datetime) -> bool:
    """Whether a credential was issued after a revocation. It may name whole seconds only."""
    return issued_at is not None and issued_at >= revoked_at.replace(microsecond=0)


def time_of_issue(proof: VerifiedCredential) -> datetime | None:
    """When a credential was issued: as it says, else 24 hours before its end.

    ``iat`` is missing in the specification. Without a time a claim that was revoked once would
    never count again. None if the end is too far in the future for that lifetime.
    """
    if proof.issued_at is not None:
        return bounded(proof.issued_at)
    issued_at = proof.expires_at - CREDENTIAL_LIFETIME
    if issued_at > timezone.now() + CLOCK_SKEW:
        return None
    return issued_at


def end_of(proof: VerifiedCredential) -> datetime:
    """When a credential ends: as it says, and at most its lifetime after it was read."""
    return min(proof.expires_at, timezone.now() + CREDENTIAL_LIFETIME)
