"""Whether the stored tokens can be used: by the keys of the settings, and at the service."""

from datetime import datetime, timedelta

from django.db.models import QuerySet
from django.utils import timezone

from django_identity import conf
from django_identity.exceptions import SealedValueUnreadable
from django_identity.lifecycle import sealing
from django_identity.lifecycle.operators.doctor.finding import (
    Diagnosis,
    Level,
    counted,
    problem,
)
from django_identity.models import TokenGrant
from django_identity.models.querysets import number_of

OPENED = 20
LATELY = timedelta(days=1)
# Some people a day revoke at the service while its event is lost. So many are no accident.
FEWEST_LOST = 5
SHARE_LOST = 1 / 20
KEY_MISSING = (
    "Put the former key back into ENCRYPTION_KEYS, behind the current one (or into"
    " SECRET_KEY_FALLBACKS). Nobody has lost anything. If the key is lost for good:"
    " identity_rotate_keys --forget-unreadable."
)
MANY_LOST = (
    "Was a backup restored? Its refresh tokens are spent: stop at once with identity_refetch"
    " --pause. Do two sites use one client? Each ends the other's tokens: register two. The log"
    " lines identity.grant.lost have the reasons: access_token_rejected is a wrong BASE_URL or"
    " client, sealed_value_unreadable a key that was given up."
)


def check_keys() -> Diagnosis:
    """Open the newest tokens."""
    newest = newest_grants()
    closed = sum(not _opens(grant) for grant in newest)
    if closed:
        message = f"no key opens {closed} of the newest {len(newest)} stored tokens"
        yield problem("keys", message, KEY_MISSING)


def newest_grants() -> list[TokenGrant]:
    """The grants whose tokens were stored last: they are due last, which an index knows."""
    ours = TokenGrant.objects.select_related("identity").filter(
        identity__environment=conf.application().environment,
        identity__refetch_due_at__isnull=False,
        needs_reauthorization=False,
    )
    return list(ours.order_by("-identity__refetch_due_at")[:OPENED])


def _opens(grant: TokenGrant) -> bool:
    column = "refresh_token" if grant.refresh_token else "access_token"
    try:
        sealing.unseal(grant.identity, grant, column)
    except SealedValueUnreadable:
        return False
    return True


def check_grants() -> Diagnosis:
    """Grants that wait for their person. Many that were lost at once have one cause."""
    lost = number_of(lost_lately(timezone.now()))
    if lost >= FEWEST_LOST and _is_large_share(lost):
        message = f"{lost} grant(s) were lost within a day, one in twenty or more"
        yield problem("grants", message, MANY_LOST)
        return
    yield from counted(
        "grants",
        _dead(),
        "grant(s) wait for their person to sign in again",
        "The log lines identity.grant.lost have the reasons.",
        level=Level.WARNING,
    )


def _is_large_share(lost: int) -> bool:
    """Whether so many of the lost and the living were lost. Only as many are counted as matter."""
    alive = TokenGrant.objects.filter(needs_reauthorization=False)
    others = alive[: int(lost / SHARE_LOST)].count()
    return lost >= SHARE_LOST * (lost + others)


def lost_lately(now: datetime) -> QuerySet[TokenGrant]:
    """The grants that were lost within a day, and whose person has not signed in since."""
    return _dead().filter(
        access_expires_at__gte=now - LATELY, access_expires_at__lte=now
    )


def _dead() -> QuerySet[TokenGrant]:
    """Not by their identities: without a consent there is no grant."""
    return TokenGrant.objects.filter(needs_reauthorization=True)
