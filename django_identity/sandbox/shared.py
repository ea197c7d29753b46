"""What each scope hands over: the members of the answers, and the same in words (spec: Scopes)."""

from collections.abc import Sequence
from typing import Any

from django.conf import settings
from django.templatetags.static import static

from django_identity.sandbox import clock, switches
from django_identity.sandbox.claims import KYC_VENDOR
from django_identity.sandbox.models import KycStatus, User

PROFILE_BASIC = ("first_name", "last_name", "email", "country")
PROFILE = ("id", "email", "first_name", "last_name", "country")
KYC = ("kyc_level", "status")
KYC_OPTIONAL = ("verified_at", "provider")
_WORDS = {
    "id": "user id",
    "email": "e-mail address",
    "photo_url": "photo",
    "kyc_level": "verification level",
    "verified_at": "date of the verification",
    "provider": "the provider that verified you",
}


def profile(user: User, scopes: Sequence[str]) -> dict[str, Any]:
    """Return the members of a profile that the granted ``scopes`` list."""
    values = {
        "id": user.subject,
        "email": user.email if user.shows_email else "",
        "first_name": user.first_name,
        "last_name": user.last_name,
        "country": user.country,
        "kyc_level": user.kyc_level,
        "risk_score": user.risk_score,
        "photo_url": user.photo_url
        or settings.SANDBOX_ORIGIN + static("sandbox/person.svg"),
    }
    return {name: values[name] for name in members("profile:read", scopes)}


def kyc(user: User, scope: str = "kyc:status") -> dict[str, Any]:
    """Return whether, when and by whom ``user`` was verified (spec: KYC status)."""
    values = {
        "user_id": user.subject,
        "kyc_level": user.kyc_level,
        "status": user.kyc_status,
        "verified_at": clock.timestamp_if_any(user.kyc_verified_at),
        "provider": KYC_VENDOR,
    }
    if user.kyc_status == KycStatus.UNVERIFIED:
        values["provider"] = None
    return {name: values[name] for name in members(scope, ())}


def members(scope: str, granted: Sequence[str]) -> list[str]:
    """Return the members that ``scope`` hands over, where ``granted`` are all scopes."""
    switched = switches.current()
    is_all = switched.profile_members == "all"
    names: list[str] = []
    if scope == "profile:basic":
        names += PROFILE_BASIC
    elif scope == "profile:read":
        names += PROFILE
        if switched.optional_members:
            names.append("photo_url")
        if switched.optional_members and (is_all or "kyc:read" in granted):
            names.append("kyc_level")
        if is_all:
            names.append("risk_score")
    elif scope in {"kyc:read", "kyc:status"}:
        if scope == "kyc:read" and switched.kyc_user_id:
            names.append("user_id")
        names += KYC
        if switched.optional_members:
            names += KYC_OPTIONAL
    return names


def in_words(scope: str, granted: Sequence[str]) -> str:
    """Say what ``scope`` hands over."""
    words = ", ".join(
        _WORDS.get(name, name.replace("_", " ")) for name in members(scope, granted)
    )
    return words[:1].upper() + words[1:]
