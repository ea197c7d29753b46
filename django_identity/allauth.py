"""A policy for sites with django-allauth: ``"POLICY": "django_identity.allauth.AllauthPolicy"``."""

from collections.abc import Iterator
from typing import Any

from django.apps import apps
from django.contrib.auth.models import AbstractBaseUser

from django_identity import database
from django_identity.policy import IdentityPolicy

#: App of allauth -> its table with data about a person.
TABLES = {
    "account": "EmailAddress",
    "socialaccount": "SocialAccount",
    "mfa": "Authenticator",
    "usersessions": "UserSession",
}


class AllauthPolicy(IdentityPolicy):
    """The defaults, and an erasure that covers allauth's tables."""

    def may_come_back(self, user: AbstractBaseUser) -> bool:
        """Not if the account has another way in: a password or a social account."""
        has_social_account = any(
            rows.exists() for label, rows in _rows_of(user) if label == "socialaccount"
        )
        return super().may_come_back(user) and not has_social_account

    def erase_user(self, user: AbstractBaseUser) -> None:
        """Delete allauth's addresses, social accounts with tokens, authenticators and sessions."""
        for _, rows in _rows_of(user):
            rows.delete()
        super().erase_user(user)


def _rows_of(user: AbstractBaseUser) -> Iterator[tuple[str, Any]]:
    """The user's rows in each table of the installed apps of allauth."""
    for label, model in TABLES.items():
        if apps.is_installed(f"allauth.{label}"):
            rows = apps.get_model(label, model)._base_manager.using(database.alias())
            yield label, rows.filter(user_id=user.pk)
