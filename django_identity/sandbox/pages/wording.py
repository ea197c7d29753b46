"""Scopes and claim types in words."""

from collections.abc import Iterable
from dataclasses import dataclass

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from django_identity.sandbox import envelope
from django_identity.sandbox.connect_policy import Requirement

Text = str | Promise


@dataclass(frozen=True, slots=True)
class ScopeWording:
    """What one scope shares, as the consent screen says it."""

    scope: str
    title: Text
    detail: Text


_SCOPES: dict[str, tuple[Text, Text]] = {
    "profile:read": (
        _("Your profile"),
        _("Name, e-mail address, country and photo"),
    ),
    "kyc:read": (
        _("Your verification status"),
        _("Level, status, date and the provider that verified you"),
    ),
    "claims:read": (
        _("Your verified claims"),
        _("Signed statements such as being 18 or older, never the documents behind them"),
    ),
    "profile:basic": (
        _("Your basic profile"),
        _("Name, e-mail address and country"),
    ),
    "kyc:status": (
        _("Your verification status"),
        _("Level, status, date and the provider that verified you"),
    ),
    "documents:metadata": (
        _("The types of your documents"),
        _("Type, country and status, never their content"),
    ),
}

_REFUSALS: dict[str, Text] = {
    Requirement.KYC_LEVEL: _("a higher verification level is required"),
    Requirement.PROOF_OF_ADDRESS: _("proof of address is required"),
    envelope.ENVIRONMENT_MISMATCH: _("the application belongs to the other environment"),
}

_CLAIMS: dict[str, Text] = {
    "kyc_verified": _("Identity verified"),
    "age_over_18": _("18 or older"),
    "country_resident": _("Country of residence"),
    "unique_human": _("Unique person"),
}


def described(scopes: Iterable[str]) -> list[ScopeWording]:
    """Return each scope in words."""
    return [ScopeWording(scope, *_SCOPES.get(scope, (scope, ""))) for scope in scopes]


def refusal_reason(error_code: str) -> Text:
    """Return in words why a Connect code gave an application nothing."""
    return _REFUSALS.get(error_code, error_code)


def claim_title(claim_type: str) -> Text:
    """Return a claim type in words."""
    return _CLAIMS.get(claim_type, claim_type)
