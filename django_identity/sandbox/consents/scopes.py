"""Scopes in words, as the consent screen, the account page and e-mails say them."""

from collections.abc import Iterable
from dataclasses import dataclass

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

Text = str | Promise


@dataclass(frozen=True, slots=True)
class ScopeWording:
    """What one scope shares, as the consent screen says it."""

    scope: str
    title: Text
    detail: Text


_SCOPES: dict[str, tuple[Text, Text]] = {
    "profile:read": (_("Your profile"), _("Name, e-mail address, country and photo")),
    "kyc:read": (
        _("Your verification status"),
        _("Level, status, date and the provider that verified you"),
    ),
    "claims:read": (
        _("Your verified claims"),
        _("Signed statements such as being 18 or older, never the documents behind them"),
    ),
    "profile:basic": (_("Your basic profile"), _("Name, e-mail address and country")),
    "kyc:status": (
        _("Your verification status"),
        _("Level, status, date and the provider that verified you"),
    ),
    "documents:metadata": (
        _("The types of your documents"),
        _("Type, country and status, never their content"),
    ),
    "documents:read": (
        _("Your documents"),
        _("Passport, national ID and bank verification number, encrypted to this application"),
    ),
}


def described(scopes: Iterable[str]) -> list[ScopeWording]:
    return [ScopeWording(scope, *_SCOPES.get(scope, (scope, ""))) for scope in scopes]
