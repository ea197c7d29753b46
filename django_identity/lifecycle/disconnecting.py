"""Disconnecting: the person, or an operator, removes a link for good.

Afterwards that identity cannot sign in to the account. So the link that made the account stays
until its owner has another way in.
"""

from dataclasses import dataclass

from django.contrib.auth.models import AbstractBaseUser

from django_identity import conf, database, exceptions, policy
from django_identity.lifecycle import notices, withdrawal
from django_identity.models import LinkedIdentity


@dataclass(frozen=True, slots=True)
class Parting:
    """What follows if a user disconnects.

    ``is_only_way_in``: the account has no other way in, so the link stays. ``signs_in``: the
    identity signs in now, and afterwards does not. ``has_both``: one identity is of test and one is
    live.
    """

    is_only_way_in: bool
    signs_in: bool
    has_both: bool


def parting(user: AbstractBaseUser) -> Parting | None:
    """What follows if ``user`` disconnects now. None if nothing is linked."""
    identities = list(LinkedIdentity.objects.filter(user_id=user.pk))
    if not identities:
        return None
    return Parting(
        is_only_way_in=not all(may_disconnect(identity) for identity in identities),
        signs_in=not all(identity.connect_only for identity in identities),
        has_both=len(identities) > 1,
    )


def leave(user: AbstractBaseUser) -> bool:
    """Disconnect what is stored, in any environment. False if nothing was.

    Raises like ``disconnect``.
    """
    identities = LinkedIdentity.objects.filter(user_id=user.pk)
    was_linked = False
    with database.atomic():
        for identity in identities:
            was_linked |= disconnect(identity)
    return was_linked


def disconnect(identity: LinkedIdentity) -> bool:
    """Disconnect at the person's or an operator's wish. Returns False if the link is gone.

    Raises ``NoOtherWayIn`` or another ``IdentityError``. Then nothing has changed.
    """
    with database.atomic():
        locked = LinkedIdentity.objects.locked_beside(identity)
        if locked is None:
            return False
        if withdrawal.is_being_erased(locked):
            raise exceptions.LinkingRefused(code="erasure_pending")
        if not may_disconnect(locked):
            raise exceptions.NoOtherWayIn
        user = withdrawal.user_of(locked)
        notices.send_on_commit(user, change="disconnected")
        withdrawal.delete(locked)
    return True


def may_disconnect(identity: LinkedIdentity) -> bool:
    """Whether the owner can still sign in without the link.

    The policy is asked only about the link that made the account.
    """
    if not identity.account_made:
        return True
    site = policy.load(conf.application().policy)
    answer = site.has_other_way_in(withdrawal.user_of(identity))
    return policy.is_yes(answer, "has_other_way_in")
