"""Accounts of people, and the cast: test people whom every sandbox has, each a case to handle."""

import secrets
from dataclasses import asdict, dataclass, field
from datetime import date

from django.contrib.auth.hashers import PBKDF2PasswordHasher
from django.db import transaction

from django_identity.sandbox import claims
from django_identity.sandbox.models import (
    CREDENTIAL_LIFETIME_SECONDS,
    Environment,
    KycStatus,
    User,
    new_subject,
)
from django_identity.sandbox.people import verification

PASSWORD = "sandbox-person"
ADULT_BIRTHDAY = date(1990, 1, 1)
COUNTRIES = {"NG": "Nigeria", "PT": "Portugal", "EG": "Egypt"}


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
class Member:
    """What makes a person of the cast."""

    first_name: str
    last_name: str
    country: str = "NG"
    date_of_birth: date = ADULT_BIRTHDAY
    credential_seconds: int = CREDENTIAL_LIFETIME_SECONDS


#: Their e-mail addresses and subjects rest on the names and the order here: add at the end.
CAST = {
    "ada": Member("Ada", "Okafor"),
    "bruno": Member("Bruno", "Costa", country="PT"),
    "chidi": Member("Chidi", "Eze", date_of_birth=date(2020, 1, 1)),
    "dayo": Member("Dayo", "Bello"),
    "emeka": Member("Emeka", "Nwosu"),
    "funmi": Member("Funmi", "Ojo"),
    "layla": Member("ليلى", "حسن", country="EG"),
    "gozie": Member("Gozie", "Ade", credential_seconds=120),
}
# Who has not tried to verify, or was rejected; and who has not proved an address.
BVN_OF = {"dayo": None, "emeka": verification.BVN_NAME_MISMATCH}
WITHOUT_PROOF = {"dayo", "emeka", "funmi"}


def create_user(
    *,
    environment: Environment = Environment.TEST,
    email: str = "",
    password: str = "",
    first_name: str = "Ada",
    last_name: str = "Okafor",
    country: str = "NG",
    date_of_birth: date = ADULT_BIRTHDAY,
    subject: str = "",
    credential_seconds: int = CREDENTIAL_LIFETIME_SECONDS,
    shows_email: bool = True,
) -> NewUser:
    """Create an account; an empty password, e-mail address or subject is made up.

    Raises:
        django.db.IntegrityError: the e-mail address or the subject is taken.
    """
    password = password or secrets.token_urlsafe(12)
    user = User(
        subject=subject or new_subject(),
        environment=environment,
        email=(email or f"person-{secrets.token_hex(4)}@sandbox.example").lower(),
        first_name=first_name,
        last_name=last_name,
        country=country.upper(),
        date_of_birth=date_of_birth,
        credential_seconds=credential_seconds,
        shows_email=shows_email,
    )

    user.set_password(password)
    user.save(force_insert=True)
    return NewUser(user, password)


@transaction.atomic
def move_in() -> None:
    """Create the cast, with the password that all know, unless the database has it."""
    if User.objects.filter(is_cast=True).exists():
        return
    for number, (name, member) in enumerate(CAST.items(), start=1):
        email = f"{name}@sandbox.example"
        subject = f"00000000-0000-4000-8000-{number:012}"
        new = create_user(
            email=email, password=PASSWORD, subject=subject, **asdict(member)
        )
        user = new.user
        user.is_cast = True
        user.save()
        bvn = BVN_OF.get(name, verification.BVN_VERIFIED)
        if bvn is not None:
            verification.verify(user, bvn)
        if name not in WITHOUT_PROOF:
            verification.prove_address(user)


def offered() -> list[User]:
    """Return those whom the sign-in page offers."""
    return list(
        User.objects.filter(is_cast=True, deletion_requested_at=None).order_by("pk")
    )


def described(user: User) -> str:
    """Say in words which case ``user`` is now, such as "verified, 18 or older, Nigeria"."""
    parts = [user.kyc_status]
    if user.kyc_status == KycStatus.UNVERIFIED:
        parts = ["not verified yet"]
    if user.is_verified:
        types = [claim.claim_type for claim in claims.active(user)]
        parts.append(
            "18 or older" if claims.AGE_OVER_18 in types else "no proof of being 18"
        )
    parts.append(country_name(user.country))
    if user.is_verified and user.address_proved_at is None:
        parts.append("no proof of address")
    if user.credential_seconds < CREDENTIAL_LIFETIME_SECONDS:
        parts.append(f"credential valid for {user.credential_seconds // 60} minutes")
    return ", ".join(parts)


def country_name(code: str) -> str:
    """Return a country in words, or its code if the sandbox has none."""
    return COUNTRIES.get(code, code)
