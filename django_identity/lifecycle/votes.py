"""What the site's policy says about an account that is to be erased."""

from collections.abc import Iterable
from typing import Any

from django.contrib.auth.models import AbstractBaseUser

from django_identity import conf, database, policy
from django_identity.models import AccountKept
from django_identity.policy import IdentityPolicy


class AccountStillThere(RuntimeError):
    """The policy deletes accounts, but the row still exists: ``delete`` only hides it."""


def policies_of() -> list[IdentityPolicy]:
    """The policy that decides."""
    return [policy.load(conf.application().policy)]


def allow_erasure(policies: Iterable[IdentityPolicy]) -> bool:
    """Whether all let people erase themselves."""
    return all(site.people_may_erase for site in policies)


def ask_for_audit(policies: Iterable[IdentityPolicy]) -> bool:
    """Whether any wants a search for what an erasure left."""
    return any(site.audit_erasures for site in policies)


def why_kept(
    policies: Iterable[IdentityPolicy], user: AbstractBaseUser, *, is_made: bool
) -> str:
    """Why the account stays, or an empty text: any may keep it.

    ``is_made``: the account came with an identity.
    """
    answers = (site.keeps_account(user, made_for_identity=is_made) for site in policies)
    if not any(policy.is_yes(answer, "keeps_account") for answer in answers):
        return ""
    if policy.is_privileged(user):
        return AccountKept.PRIVILEGED
    if is_made:
        return AccountKept.POLICY
    return AccountKept.OLDER


def delete_account(policies: Iterable[IdentityPolicy]) -> bool:
    """Whether any deletes the account's row, where none keeps the account."""
    return any(_deletes(site) for site in policies)


def erase_user(policies: Iterable[IdentityPolicy], user: AbstractBaseUser) -> bool:
    """Let each policy erase the account, those that delete it last. Returns whether it is erased.

    None runs after the row is gone. Raises ``AccountStillThere``.
    """
    key = user.pk
    left: Any = user
    for site in sorted(policies, key=_deletes):
        site.erase_user(left)
        left = database.all_users().filter(pk=key).first()
        if left is None:
            return True
        if _deletes(site):
            raise AccountStillThere
    # An account that was emptied but cannot be disabled is as erased as it can be.
    can_be_disabled = "is_active" in database.field_names(left)
    return not (left.is_active and can_be_disabled)


def _deletes(site: IdentityPolicy) -> bool:
    return site.erasure == "delete"
