"""Accounts of people, and the cast: test people whom every sandbox has, each a case to handle."""

import secrets
from dataclasses import asdict, dataclass, field, replace
from datetime import date

from django.contrib.auth.hashers import PBKDF2PasswordHasher
from django.db import transaction
from django.db.models import QuerySet

from django_identity.sandbox.models import (
    CREDENTIAL_LIFETIME_SECONDS,
    Environment,
    User,
    new_subject,
)
from django_identity.sandbox.people import verification

PASSWORD = "sandbox-person"
ADULT_BIRTHDAY = date(1990, 1, 1)


class QuickPasswordHasher(PBKDF2PasswordHasher):
    """PBKDF2 at a cost fit for made-up passwords: tests create many people."""

    algorithm = "pbkdf2_sandbox"
    iterations = 1000


@dataclass(frozen=True, slots=True)
class Account:
    """What makes an account; an empty password, e-mail address or subject is made up."""

    first_name: str = "Ada"
    last_name: str = "Okafor"
    country: str = "NG"
    date_of_birth: date = ADULT_BIRTHDAY
    credential_seconds: int = CREDENTIAL_LIFETIME_SECONDS
    environment: Environment = Environment.TEST
    email: str = ""
    password: str = field(default="", repr=False)
    subject: str = ""
    shows_email: bool = True


#: Their e-mail addresses and subjects rest on the names and the order here: add at the end.
CAST = {
    "ada": Account("Ada", "Okafor"),
    "bruno": Account("Bruno", "Costa", country="PT"),
    "chidi": Account("Chidi", "Eze", date_of_birth=date(2020, 1, 1)),
    "dayo": Account("Dayo", "Bello"),
    "emeka": Account("Emeka", "Nwosu"),
    "funmi": Account("Funmi", "Ojo"),
    "layla": Account("ليلى", "حسن", country="EG"),
    "gozie": Account("Gozie", "Ade", credential_seconds=120),
}
# Who has not tried to verify, or was rejected; and who has not proved an address.
BVN_OF = {"dayo": None, "emeka": verification.BVN_NAME_MISMATCH}
WITHOUT_PROOF = {"dayo", "emeka", "funmi"}


def create_user(account: Account) -> tuple[User, str]:
    """Create an account. Return it with the password, which is shown this once.

    Raises:
        django.db.IntegrityError: the e-mail address or the subject is taken.
    """
    user = User(**asdict(account))
    user.subject = account.subject or new_subject()
    email = account.email or f"person-{secrets.token_hex(4)}@sandbox.example"
    user.email = email.lower()
    user.country = account.country.upper()
    password = account.password or secrets.token_urlsafe(12)
    user.set_password(password)
    user.save(force_insert=True)
    return user, password


@transaction.atomic
def move_in() -> None:
    """Create the cast, with the password that all know, unless the database has it."""
    if User.objects.filter(is_cast=True).exists():
        return
    for number, (name, account) in enumerate(CAST.items(), start=1):
        known = replace(
            account,
            email=f"{name}@sandbox.example",
            password=PASSWORD,
            subject=f"00000000-0000-4000-8000-{number:012}",
        )
        user, _password = create_user(known)
        user.is_cast = True
        user.save()
        bvn = BVN_OF.get(name, verification.BVN_VERIFIED)
        if bvn is not None:
            verification.verify(user, bvn)
        if name not in WITHOUT_PROOF:
            verification.prove_address(user)


def offered() -> QuerySet[User]:
    """Return those whom the sign-in page offers."""
    people = User.objects.filter(is_cast=True, deletion_requested_at=None)
    return people.order_by("pk")
