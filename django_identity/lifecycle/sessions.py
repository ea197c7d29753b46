"""Sessions of the identity sign-in: on which identity one rests, and what ends it.

A session has the identity's ``mark_of``, with its epoch, and Django's own hash of the user.
``backends.IdentityBackend`` compares both at every request. So a stolen cookie is worth nothing
either after one of these:

- ``end_all`` raises the epoch: a revocation, the end of an identity, "sign out everywhere";
- no identity of the user signs in any more (``oldest_that_signs_in``): it is of the other
  environment;
- an older identity of the user begins to sign in, because the session has the oldest one's mark;
- the site's default manager hides the user;
- Django's own: the account is disabled, its password or ``SECRET_KEY`` has changed, or the session
  has expired.

``backends.why_session_ended`` tells the person of a revocation or an erasure.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from operator import attrgetter
from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.models import AbstractBaseUser
from django.db.models import F
from django.db.models.manager import BaseManager

from django_identity import database, signals
from django_identity.models import Consent, LinkedIdentity, LinkedVia


def identities_of(user_id: Any) -> list[LinkedIdentity]:
    """All identities of the user with the user's row, the oldest first. One query.

    Users whom the site's own default manager hides have none here. An identity that no event finds
    is none: nobody could end it (``own_digest``).
    """
    found = LinkedIdentity.objects.filter(user_id=user_id).select_related("user")
    if has_own_manager():
        found = found.filter(user__in=database.users().filter(pk=user_id))
    return _oldest_first(found)


def identities_of_all(user_ids: Collection[Any]) -> Mapping[Any, list[LinkedIdentity]]:
    """The key of each user -> what ``identities_of`` has, without the user's row. One query."""
    found = LinkedIdentity.objects.filter(user_id__in=user_ids)
    if has_own_manager():
        found = found.filter(user__in=database.users().filter(pk__in=user_ids))
    by_user: dict[Any, list[LinkedIdentity]] = defaultdict(list)
    for identity in _oldest_first(found):
        by_user[identity.user_id].append(identity)
    return by_user


def _oldest_first(found: Iterable[LinkedIdentity]) -> list[LinkedIdentity]:
    reachable = [row for row in found if row.subject_digest == row.own_digest]
    return sorted(reachable, key=attrgetter("pk"))


def has_own_manager() -> bool:
    """Whether the site's default manager is not Django's own."""
    manager = type(get_user_model()._default_manager)
    return manager.get_queryset is not BaseManager.get_queryset


def oldest_that_signs_in(
    identities: Iterable[LinkedIdentity],
) -> LinkedIdentity | None:
    """The first of ``identities`` on which a session may rest. The oldest is the first of them.

    It is granted, linked by a full sign-in, and of the settings' environment.
    """
    for identity in identities:
        is_granted = identity.consent == Consent.GRANTED
        # A link by code gives no power to sign in: the code may be another person's.
        is_by_sign_in = identity.linked_via == LinkedVia.OAUTH
        if is_granted and is_by_sign_in and identity.is_served:
            return identity
    return None


def begun_by(granted: LinkedIdentity) -> LinkedIdentity | None:
    """The identity on which a session rests that begins with the sign-in of ``granted``.

    No other identity of the user can sign in, so no second read is needed.
    """
    identities = [granted]
    if has_own_manager():
        identities = identities_of(granted.user_id)
    return oldest_that_signs_in(identities)


def may_be_lent(identities: Iterable[LinkedIdentity]) -> bool:
    """Whether another app may lend a session to the user of ``identities``.

    With django-hijack, staff who came by identity look at the site as somebody else, and come back.
    Meanwhile the session has the other user and this backend. Nobody looks as a person whose
    consent ended: then the session of that person themselves has to say why it ended.
    """
    return all(identity.consent == Consent.GRANTED for identity in identities)


def mark_of(identity: LinkedIdentity | None) -> str:
    """What stands for the identity in a session. It changes when all its sessions end.

    None: the session is lent, and no identity of its user is in it.
    """
    if identity is None:
        return "lent"
    return f"{identity.pk}.{identity.session_epoch}"


def sign_out_everywhere(user: AbstractBaseUser) -> None:
    """End every session of ``user``, who asks for it."""
    with database.atomic():
        LinkedIdentity.objects.lock_those_of(user.pk)
        end_all(user.pk)


def end_all(user_id: Any) -> None:
    """End every session of the user that began with the identity sign-in, and say so.

    The epoch of every identity rises: a session may rest on any of them later. The caller has
    locked them.
    """
    theirs = LinkedIdentity.objects.filter(user_id=user_id)
    # By their keys: MySQL locks the entries of the index that it searches, too, and that may be
    # another one than in the statement that has locked the rows.
    keys = list(theirs.values_list("pk", flat=True))
    LinkedIdentity.objects.filter(pk__in=keys).change(
        session_epoch=F("session_epoch") + 1
    )
    signals.announce_end(signals.sessions_ended, LinkedIdentity, user_id=user_id)
