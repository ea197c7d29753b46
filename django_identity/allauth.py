"""A policy for sites with django-allauth: ``"POLICY": "django_identity.allauth.AllauthPolicy"``."""

from collections.abc import Iterator
from typing import Any

from django.apps import apps
from django.conf import settings
from django.contrib.auth.models import AbstractBaseUser

from django_identity import database
from django_identity.policy import IdentityPolicy

#: App of allauth -> its table with data about a person.
TABLES = {
    "account": "account.EmailAddress",
    "socialaccount": "socialaccount.SocialAccount",
    "mfa": "mfa.Authenticator",
    "usersessions": "usersessions.UserSession",
    "idp.oidc": "allauth_idp_oidc.Token",
}
#: A security key that is no passkey is a second factor.
IS_PASSKEY = {"data__credential__clientExtensionResults__credProps__rk": True}


class AllauthPolicy(IdentityPolicy):
    """The defaults, with allauth's ways in, and an erasure that covers allauth's tables."""

    set_password_url = "account_set_password"  # noqa: S105  a URL name

    def has_other_way_in(self, user: AbstractBaseUser) -> bool:
        """A password, a social account, a passkey or a code by e-mail, as far as allauth has it."""
        if super().has_other_way_in(user):
            return True
        rows_of = dict(_rows_of(user))
        ways = []
        if "socialaccount" in rows_of:
            ways.append(rows_of["socialaccount"])
        if "mfa" in rows_of and getattr(settings, "MFA_PASSKEY_LOGIN_ENABLED", False):
            ways.append(rows_of["mfa"].filter(type="webauthn", **IS_PASSKEY))
        if "account" in rows_of and getattr(
            settings,
            "ACCOUNT_LOGIN_BY_CODE_ENABLED",
            False,
        ):
            ways.append(rows_of["account"].filter(verified=True))
        return any(rows.exists() for rows in ways)

    def erase_user(self, user: AbstractBaseUser) -> None:
        """Delete allauth's addresses, social accounts, authenticators, sessions and tokens."""
        for _, rows in _rows_of(user):
            rows.delete()
        super().erase_user(user)


def _rows_of(user: AbstractBaseUser) -> Iterator[tuple[str, Any]]:
    """The user's rows in each table of the installed apps of allauth."""
    for label, model in TABLES.items():
        if apps.is_installed(f"allauth.{label}"):
            manager = apps.get_model(model)._base_manager
            rows = manager.using(database.alias())
            yield label, rows.filter(user_id=user.pk)
