"""Accounts of people."""

import secrets
from dataclasses import dataclass, field
from datetime import date

from django.contrib.auth.hashers import PBKDF2PasswordHasher

from django_identity.sandbox.models import (
    CREDENTIAL_LIFETIME_SECONDS,
    Environment,
    User,
    new_subject,
)

ADULT_BIRTHDAY = date(1990, 1, 1)


class QuickPasswordHasher(PBKDF2PasswordHasher):
    """PBKDF2 at a cost fit for made-up passwords: tests create many people."""

    algorithm = "pbkdf2_sandbox"
    iterations = 1000


@dataclass(frozen=True, slots=True)
class NewUser:
    """A created account with the password that is shown this once."""

    user: User
    password: str = field(repr=False)


def create_user(
    *,
    environment: Environment = Environment.TEST,
    email: str = "",
    password: str = "",
    first_name: str = "",
    last_name: str = "",
    country: str = "",
    date_of_birth: date = ADULT_BIRTHDAY,
    subject: str = "",
    credential_seconds: int = CREDENTIAL_LIFETIME_SECONDS,
    is_cast: bool = False,
) -> NewUser:
    """Create an account; whatever is empty is made up.

    Raises:
        django.db.IntegrityError: the e-mail address or the subject is taken.
    """
    password = password or secrets.token_urlsafe(12)
    user = User(
        subject=subject or new_subject(),
        environment=environment,
        email=(email or f"person-{secrets.token_hex(4)}@sandbox.example").lower(),
        first_name=first_name or "Ada",
        last_name=last_name or "Okafor",
        country=(country or "NG").upper(),
        date_of_birth=date_of_birth,
        credential_seconds=credential_seconds,
        is_cast=is_cast,
    )
    user.set_password(password)
    user.save(force_insert=True)
    return NewUser(user, password)
