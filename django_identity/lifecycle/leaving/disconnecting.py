"""Disconnecting: the person, or an operator, removes a link for good.

Afterwards that identity cannot sign in to the account. So the link that made the account stays
until its owner has another way in.
"""

from dataclasses import dataclass

from django.contrib.auth.models import AbstractBaseUser

from django_identity import database, exceptions, policy
from django_identity.lifecycle.ground import notices, withdrawal
from django_identity.logs import LogEvent, log
from django_identity.models import LinkedIdentity


@dataclass(frozen=True, slots=True)
class Parting:
    """What follows if a user disconnects.

    ``is_only_way_in``: the account has no other way in, so the link stays. ``signs_in``: the
    identity signs in now, and afterwards does not.
    """

    is_only_way_in: bool
    signs_in: bool


def parting(user: AbstractBaseUser) -> Parting | None:
    """What follows if ``user`` disconnects now. None if nothing is linked."""
    identity = LinkedIdentity.objects.of_user(user.pk)
    if identity is None:
        return None
    return Parting(
        is_only_way_in=not may_disconnect(identity),
        signs_in=not identity.connect_only,
    )


def disconnect_user(user: AbstractBaseUser) -> bool:
    """Disconnect the identity of ``user``. Returns False if nothing was linked.

    Raises like ``disconnect``.
    """
    identity = LinkedIdentity.objects.of_user(user.pk)
    return identity is not None and disconnect(identity)


def disconnect(identity: LinkedIdentity) -> bool:
    """Disconnect at the person's or an operator's wish. Returns False if the link is gone.

    Raises ``NoOtherWayIn`` or another ``IdentityError``. Then nothing has changed.
    """
    with database.atomic():
        locked = LinkedIdentity.objects.locked_row(identity)
        if locked is None:
            return False
        if not may_disconnect(locked):
            raise exceptions.NoOtherWayIn
        user = withdrawal.user_of(locked)
        notices.send_on_commit(user, change="disconnected")
        withdrawal.delete(locked)
        # A restored backup brings the row back, and no event tells of a disconnection.
        key = locked.pk
        linked = locked.created_at.isoformat()
        # Not a partial: if the log fails, Django 5.2 asks for the function's name.
        database.on_commit(
            lambda: log(LogEvent.DISCONNECTED, identity=key, linked=linked),
        )
    return True


def may_disconnect(identity: LinkedIdentity) -> bool:
    """Whether the owner can still sign in without the link.

    The policy is asked only about the link that made the account.
    """
    if not identity.made_its_account:
        return True
    owner = withdrawal.user_of(identity)
    answer = policy.of_site().has_other_way_in(owner)
    return policy.is_yes(answer, "has_other_way_in")
