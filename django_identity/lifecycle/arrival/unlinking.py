"""Disconnecting: what follows, and doing it. The rows of the database tell what there is."""

from dataclasses import dataclass, replace

from django.contrib.auth.models import AbstractBaseUser
from django.db.models import Q

from django_identity import conf, policy
from django_identity.lifecycle import erasure
from django_identity.lifecycle.arrival import link_notice
from django_identity.models import SIGNS_IN, LinkedIdentity, LinkedVia


def unlink(
    user: AbstractBaseUser, *, application: conf.Application, only_via: LinkedVia | None = None
) -> bool:
    """Disconnect what is stored under the application, in any environment. False if nothing was.

    ``only_via``: leave an identity that was linked in another way.
    """
    identities = LinkedIdentity.objects.filter(user_id=user.pk, application=application.alias)
    only = Q() if only_via is None else Q(linked_via=only_via)
    disconnected = sum(erasure.disconnect(each, only=only) for each in list(identities)) > 0
    if disconnected:
        link_notice.send_change_on_commit(application, [user], change="disconnected")
    return disconnected


@dataclass(frozen=True, slots=True)
class Parting:
    """What follows a disconnection. ``remembers``: a digest of the subject stays with the account.

    ``comes_back``: a sign-in with the same identity leads into the same account again.
    """

    remembers: bool
    comes_back: bool


def parting(user: AbstractBaseUser, *, application: conf.Application) -> Parting:
    """What follows if ``user`` disconnects from the application now."""
    identities = LinkedIdentity.objects.filter(user_id=user.pk, application=application.alias)
    remembers = identities.filter(linked_via__in=SIGNS_IN).exists()
    site = policy.load(application.policy)
    return Parting(remembers, remembers and site.may_come_back(user))


def application_to_leave(user: AbstractBaseUser, alias: str) -> conf.Application:
    """The application ``alias``, even if only an identity of ``user`` still names it.

    Raises ``ConfigurationError``.
    """
    is_linked = LinkedIdentity.objects.filter(user_id=user.pk, application=alias).exists()
    if alias not in conf.aliases() and is_linked:
        return replace(conf.application(), alias=alias)
    return conf.application(alias)
