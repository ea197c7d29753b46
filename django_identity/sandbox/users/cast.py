"""The cast: test people whom every sandbox has, each a case that a site must handle."""

import unicodedata
from dataclasses import dataclass
from datetime import date

from django.db import transaction
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from django_identity.sandbox.claims import claims
from django_identity.sandbox.instruments import clock
from django_identity.sandbox.models import (
    CREDENTIAL_LIFETIME_SECONDS,
    Claim,
    Environment,
    KycStatus,
    User,
)
from django_identity.sandbox.users import accounts, verification

MOST_MADE = 12
PASSWORD = "sandbox-person"  # noqa: S105 -- for everybody to know
BVN_OF = {
    KycStatus.VERIFIED: verification.BVN_VERIFIED,
    KycStatus.REJECTED: verification.BVN_NAME_MISMATCH,
}
COUNTRIES: dict[str, str | Promise] = {
    "NG": gettext_lazy("Nigeria"),
    "BR": gettext_lazy("Brazil"),
    "DE": gettext_lazy("Germany"),
    "EG": gettext_lazy("Egypt"),
    "ES": gettext_lazy("Spain"),
    "FR": gettext_lazy("France"),
    "GB": gettext_lazy("United Kingdom"),
    "GH": gettext_lazy("Ghana"),
    "IN": gettext_lazy("India"),
    "KE": gettext_lazy("Kenya"),
    "PT": gettext_lazy("Portugal"),
    "US": gettext_lazy("United States"),
    "ZA": gettext_lazy("South Africa"),
}


@dataclass(frozen=True, slots=True)
class Member:
    """What makes a person of the cast, or one whom a developer makes beside it."""

    first_name: str
    last_name: str
    country: str = "NG"
    age: int = 36
    kyc_status: KycStatus = KycStatus.VERIFIED
    proof_of_address: bool = True
    credential_seconds: int = CREDENTIAL_LIFETIME_SECONDS
    without: frozenset[str] = frozenset()
    environment: Environment = Environment.TEST


#: Their e-mail addresses and subjects rest on the names and the order here: add at the end.
CAST = {
    "ada": Member("Ada", "Okafor"),
    "bruno": Member("Bruno", "Costa", country="PT"),
    "chidi": Member("Chidi", "Eze", age=15),
    "dayo": Member("Dayo", "Bello", kyc_status=KycStatus.UNVERIFIED, proof_of_address=False),
    "emeka": Member("Emeka", "Nwosu", kyc_status=KycStatus.REJECTED, proof_of_address=False),
    "funmi": Member("Funmi", "Ojo", proof_of_address=False),
    "layla": Member("ليلى", "حسن", country="EG"),
    "gozie": Member("Gozie", "Ade", credential_seconds=120),
}


@transaction.atomic
def move_in() -> None:
    """Create the cast, unless the database has it."""
    if User.objects.filter(subject=subject_of("ada")).exists():
        return
    for name in CAST:
        make(CAST[name], subject=subject_of(name), email=f"{name}@sandbox.example")


def subject_of(name: str) -> str:
    """Return the subject of a member of the cast, the same in every sandbox."""
    return f"00000000-0000-4000-8000-{list(CAST).index(name) + 1:012}"


@transaction.atomic
def make(member: Member, *, subject: str = "", email: str = "") -> User:
    """Create a person whom the sign-in page offers, with the password of the cast."""
    user = accounts.create_user(
        environment=member.environment,
        email=email,
        password=PASSWORD,
        first_name=member.first_name,
        last_name=member.last_name,
        country=member.country,
        date_of_birth=_birthday(member.age),
        subject=subject,
        credential_seconds=member.credential_seconds,
        is_cast=True,
    ).user
    if member.kyc_status in BVN_OF:
        verification.verify(user, BVN_OF[member.kyc_status])
    if member.proof_of_address:
        verification.prove_address(user)
    Claim.objects.filter(user=user, claim_type__in=member.without).delete()
    return user


def listed() -> list[User]:
    """Return those whom the sign-in page offers: the cast, then the last who were made."""
    offered = list(User.objects.filter(is_cast=True, deletion_requested_at=None).order_by("pk"))
    return offered[: len(CAST)] + offered[len(CAST) :][-MOST_MADE:]


def find(subject: str) -> User | None:
    return next((user for user in listed() if user.subject == subject), None)


def described(user: User) -> str:
    """Say in words which case ``user`` is now, such as "verified, 18 or older, Nigeria"."""
    parts = [_status(user)]
    if user.kyc_status == KycStatus.VERIFIED:
        parts += _proven(user)
    parts.append(country_name(user.country))
    if user.kyc_status == KycStatus.VERIFIED and user.address_proved_at is None:
        parts.append(_("no proof of address"))
    if unicodedata.bidirectional(user.first_name[:1] or "-") == "AL":
        parts.append(_("name in Arabic"))
    if user.credential_seconds < CREDENTIAL_LIFETIME_SECONDS:
        minutes = user.credential_seconds // 60
        valid = ngettext(
            "credential valid for %(minutes)d minute",
            "credential valid for %(minutes)d minutes",
            minutes,
        )
        parts.append(valid % {"minutes": minutes})
    if user.environment == Environment.LIVE:
        parts.append(_("live"))
    return _(", ").join(parts)


def country_name(code: str) -> str:
    """Return a country in words, or its code if the sandbox has none."""
    return str(COUNTRIES.get(code, code))


def _status(user: User) -> str:
    match user.kyc_status:
        case KycStatus.VERIFIED:
            return _("verified")
        case KycStatus.REJECTED:
            return _("rejected")
        case _:
            return _("not verified yet")


def _proven(user: User) -> list[str]:
    """Say whether the person is known to be an adult."""
    if any(claim.claim_type == claims.AGE_OVER_18 for claim in claims.active(user)):
        return [_("18 or older")]
    is_adult = claims.is_adult(user.date_of_birth, clock.now().date())
    return [_("age not shown")] if is_adult else [_("not 18")]


def _birthday(age: int) -> date:
    """Return the first of January on which a person of ``age`` was born."""
    return date(clock.now().year - age, 1, 1)
