"""Accounts of people and of applications."""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date

from django.contrib.auth.hashers import PBKDF2PasswordHasher
from django.db import transaction
from oauth2_provider.generators import generate_client_secret

from django_identity.sandbox.models import Application, Client, Environment, User, new_subject

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


@dataclass(frozen=True, slots=True)
class NewClient:
    """A created credential set with the secret that is shown this once."""

    client_id: str
    client_secret: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class NewApplication:
    """A registered application with both of its credential sets."""

    application: Application
    test: NewClient
    live: NewClient


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
    )
    user.set_password(password)
    user.save(force_insert=True)
    return NewUser(user, password)


@transaction.atomic
def register_application(name: str, redirect_uris: Sequence[str]) -> NewApplication:
    """Register an application and issue its test and live credential sets."""
    application = Application.objects.create(name=name)
    test, live = (
        _issue_client(application, environment, redirect_uris)
        for environment in (Environment.TEST, Environment.LIVE)
    )
    return NewApplication(application, test=test, live=live)


def _issue_client(
    application: Application, environment: Environment, redirect_uris: Sequence[str]
) -> NewClient:
    """Create the credential set of one environment; the secret is stored hashed."""
    client_secret = generate_client_secret()
    client = Client.objects.create(
        registered=application,
        environment=environment,
        name=application.name,
        redirect_uris=" ".join(redirect_uris),
        client_type=Client.CLIENT_CONFIDENTIAL,
        authorization_grant_type=Client.GRANT_AUTHORIZATION_CODE,
        client_secret=client_secret,
    )
    return NewClient(client.client_id, client_secret)
