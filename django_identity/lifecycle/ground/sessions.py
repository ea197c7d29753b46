"""Sessions of the identity sign-in: the identity behind each, and its ends.

A session has the identity's ``mark_of``, with its epoch, and Django's own hash of the user.
``backends.IdentityBackend`` compares both at every request. So a stolen cookie is worth nothing
either after one of these:

- ``end_all`` raises the epoch: a revocation, "sign out everywhere";
- the identity is deleted, or no longer signs in (``LinkedIdentity.signs_in``);
- the site's default manager hides the user;
- Django's own: the account is disabled, its password or ``SECRET_KEY`` has changed, or the session
  has expired.

``web.sessions.why_session_ended`` tells the person of a revocation or an erasure.
"""

from collections.abc import Collection
from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.models import AbstractBaseUser
from django.db.models import QuerySet

from django_identity import database, signals
from django_identity.models import LinkedIdentity

#: What a user was read with: the identity that counts here, or None.
UserAndIdentity = tuple[Any, LinkedIdentity | None]


def user_with_identity(user_id: Any) -> UserAndIdentity:
    """The user, as the site's default manager has them, and the identity; else twice None."""
    for user in _users().filter(pk=user_id):
        return user, _taken_off(user)
    return None, None


def users_with_identities(user_ids: Collection[Any]) -> list[UserAndIdentity]:
    """The same of several users. Users hidden by the manager are missing."""
    users = _users().filter(pk__in=user_ids)
    return [(user, _taken_off(user)) for user in users]


def _users() -> QuerySet[Any]:
    # With ``only`` in the manager, ``select_related`` would raise.
    return database.users().defer(None).select_related("linked_identity")


def _taken_off(user: Any) -> LinkedIdentity | None:
    """The identity that was read with the user, no longer on the instance.

    A site may keep the instance in a cache, where the relation would go on saying "granted".
    """
    relation: Any = get_user_model()._meta.get_field("linked_identity")
    identity: LinkedIdentity | None = relation.get_cached_value(user)
    relation.delete_cached_value(user)
    if identity is None or not identity.is_served:
        return None
    return identity


def mark_of(identity: LinkedIdentity) -> str:
    """What stands for the identity in a session. It changes when all its sessions end."""
    return f"{identity.pk}.{identity.session_epoch}"


def sign_out_everywhere(user: AbstractBaseUser) -> None:
    """End every session of ``user``, who asks for it."""
    with database.atomic():
        identity = LinkedIdentity.objects.locked_of_user(user.pk)
        if identity is not None:
            end_all(identity)


def end_all(identity: LinkedIdentity) -> None:
    """End every session that began with the identity sign-in, and say so.

    The caller has locked the identity.
    """
    # By a statement: a receiver of ``post_save`` that raises would keep the sessions.
    identity.change(session_epoch=identity.session_epoch + 1)
    announce_end(identity)


def announce_end(identity: LinkedIdentity) -> None:
    """Tell receivers, after the commit, that the sessions of the user have ended."""
    signals.announce_end(
        signals.sessions_ended,
        LinkedIdentity,
        user_id=identity.user_id,
    )
