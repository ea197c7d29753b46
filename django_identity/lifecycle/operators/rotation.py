"""The rotation of encryption keys: the grants' tokens are encrypted anew, with the first key.

Started sign-ins are over in an hour. How refresh tokens rotate at the service: ``said.tokens``.
"""

from collections import Counter
from collections.abc import Iterator
from enum import StrEnum

from django.db.models import QuerySet

from django_identity import database
from django_identity.exceptions import SealedValueUnreadable
from django_identity.lifecycle.ground import sealing
from django_identity.lifecycle.said import grants
from django_identity.models import TokenGrant

ROWS_AT_ONCE = 200
SEALED = ("access_token", "refresh_token")


class Rotated(StrEnum):
    """What became of the tokens of a grant."""

    RESEALED = "re-encrypted"
    #: Newer ones were stored meanwhile, under the first key already.
    OVERTAKEN = "renewed meanwhile"
    #: They are left as they are: the key may only be missing from the settings.
    UNREADABLE = "opened by no key"
    #: The operator gave them up. The person has to sign in again.
    FORGOTTEN = "ended: the person has to sign in again"
    #: They are of the environment that the settings do not have, so their keys are not known.
    STRAY = "of the other environment"


def rotate_keys(
    *,
    size: int = ROWS_AT_ONCE,
    forget_unreadable: bool = False,
) -> Iterator[Counter[Rotated]]:
    """Re-encrypt the tokens of all grants, in batches that are committed.

    Yields what became of how many of each batch. ``forget_unreadable``: end the grants whose tokens
    no key opens. Nothing else ends them.
    """
    last = 0
    while batch := list(usable_grants().filter(pk__gt=last)[:size]):
        with database.atomic():
            fates = {grant: _rotated(grant) for grant in batch}
        if forget_unreadable:
            # Not in that transaction: who ends a grant locks the identity before any grant.
            for grant, fate in fates.items():
                if fate is Rotated.UNREADABLE:
                    fates[grant] = _forgotten(grant)
        last = batch[-1].pk
        yield Counter(fates.values())


def usable_grants() -> QuerySet[TokenGrant]:
    """The grants that have tokens, in the order of their keys."""
    usable = TokenGrant.objects.filter(needs_reauthorization=False)
    return usable.select_related("identity").order_by("pk")


def _rotated(grant: TokenGrant) -> Rotated:
    """Re-encrypt the tokens of one grant, unless no key opens the one that is needed."""
    identity = grant.identity
    if not identity.is_served:
        return Rotated.STRAY

    fresh = {}
    for column in SEALED:
        if not getattr(grant, column):
            continue
        try:
            secret = sealing.unseal(identity, grant, column)
        except SealedValueUnreadable:
            # An access token is replaced within the hour, by the refresh token.
            if column == "access_token" and grant.refresh_token:
                continue
            return Rotated.UNREADABLE
        fresh[column] = sealing.seal(identity, secret, column)

    same = TokenGrant.objects.filter(pk=grant.pk, generation=grant.generation)
    if same.update(**fresh):
        return Rotated.RESEALED
    return Rotated.OVERTAKEN


def _forgotten(grant: TokenGrant) -> Rotated:
    """End the grant, unless newer tokens were stored meanwhile."""
    reason = SealedValueUnreadable.code
    if grants.end(grant.identity, grant, reason=reason):
        return Rotated.FORGOTTEN
    return Rotated.OVERTAKEN
