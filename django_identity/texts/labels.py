"""Translated names of codes, columns, tables and countries, for people."""

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, assert_never
from unicodedata import normalize

from django.apps import apps
from django.utils.functional import Promise
from django.utils.text import capfirst, get_text_list
from django.utils.translation import get_language, gettext, ngettext
from django.utils.translation import gettext_lazy as _

from django_identity.requirements import (
    CLAIMS,
    LEVEL,
    RecentSignIn,
    RequiredClaim,
    RequiredLevel,
    RequiredScope,
    Requirement,
    split_claim,
)

Text = str | Promise
#: Names of countries in the six languages, from Unicode CLDR; see data/LICENSE.unicode.
COUNTRIES = Path(__file__).with_name("data") / "countries.json"

WORDS: Mapping[str, Text] = {
    "profile:read": _("Name, e-mail address, country and photo"),
    "profile:basic": _("Name, e-mail address and country"),
    "kyc:read": _("Verification level and date"),
    "kyc:status": _("Verification level and date"),
    "claims:read": _("Signed proofs, such as being 18 or older"),
    "documents:metadata": _("Which documents are verified, without their content"),
    "documents:read": _("The content of identity documents, encrypted for this site"),
    "kyc_verified": _("your identity has been verified"),
    "age_over_18": _("you are 18 or older"),
    "country_resident": _("your country of residence"),
    "unique_human": _("you have only one account"),
    "recent_sign_in": _("a sign-in a short while ago"),
    "verified": _("verified"),
    "unverified": _("not verified"),
    "pending": _("being verified"),
    "rejected": _("not accepted"),
    "completed": _("completed"),
    "linked": _("you connected"),
    "signed_in": _("you signed in"),
    "refetched": _("your proofs were confirmed"),
    "code_redeemed": _("you used a code"),
    "consent_revoked": _("the permission ended"),
    "kyc.verified": _("you were verified"),
    "kyc.rejected": _("your verification was not accepted"),
    "consent.granted": _("you gave your consent"),
    "consent.revoked": _("you took back your consent"),
    "claim.issued": _("a proof was issued"),
    "claim.revoked": _("a proof was revoked"),
    "data.deletion_requested": _("you asked to be erased"),
}

# Claim or scope -> the heading of a page that asks for it.
HEADINGS: Mapping[str, Text] = {
    "kyc_verified": _("Your identity needs to be verified"),
    "age_over_18": _("You need to be 18 or older"),
    "country_resident": _("You need to show where you live"),
    "unique_human": _("You need to show that you have only one account"),
    "recent_sign_in": _("You need to have signed in a short while ago"),
    "profile:read": _("You need to share your name, e-mail address, country and photo"),
    "kyc:read": _("You need to share your verification level"),
    "claims:read": _("You need to share signed proofs about you"),
    "documents:metadata": _("You need to share which of your documents are verified"),
    "documents:read": _("You need to share your identity documents"),
}

# Table -> why the site stores its records.
PURPOSES: Mapping[str, Text] = {
    "linkedidentity": _(
        "That you and the person at the identity service are the same.",
    ),
    "storedclaim": _(
        "What the identity service says about you, and how far it is proven.",
    ),
    "tokengrant": _(
        "What lets this site ask the identity service about you. Its tokens are kept sealed.",
    ),
    "webhookevent": _("What the identity service told this site about you, and when."),
    "authorizationrequest": _("Each time you went to the identity service from here."),
    "connectredemption": _(
        "Each code that you handed in here, without the code itself.",
    ),
    "subjectlock": _(
        "A trace, kept for a day, that an event or a sign-in of yours came here.",
    ),
}

# Table -> its name, if it is not the model's ``verbose_name_plural``.
TABLES: Mapping[str, Text] = {
    "user": _("Account"),
    "linkedidentity": _("Connection"),
}

# More countries than these are counted and not named in a sentence.
MOST_NAMED = 6


def has_words(requirement: Requirement) -> bool:
    """Whether pages have words for what a gate asks for. A link may name nothing else."""
    match requirement:
        case RequiredClaim(claim_type="country_resident", values=values) if values:
            return _countries()["en"].keys() >= {*values}
        case RequiredClaim(claim_type=claim_type, values=()):
            return claim_type in CLAIMS
        case RequiredLevel(level=level):
            return LEVEL.fullmatch(level) is not None
        case RecentSignIn():
            return True
        case RequiredClaim() | RequiredScope():
            return False
        case _:
            assert_never(requirement)


def in_words(code: str) -> str:
    """The name of ``code`` in the person's language, or ``code`` itself."""
    level = LEVEL.fullmatch(code)
    if level is not None:
        return gettext("verification at level {level}").format(level=level[1])
    return str(WORDS.get(code, code))


def heading_of(code: str) -> str:
    """The heading of a page that asks for a claim, a level, a scope or a recent sign-in.

    ``"country_resident=PT|FR"`` is a claim with the values of which one is asked for.
    """
    heading = HEADINGS.get(code)
    if heading is not None:
        return str(heading)
    level = LEVEL.fullmatch(code)
    if level is not None:
        return gettext("You need verification at level {level}").format(level=level[1])
    claim_type, values = split_claim(code)
    # Django's catalogues have the comma and the word before the last name.
    names = get_text_list([country_name(value) for value in values])
    if claim_type != "country_resident":
        proof = f"{claim_type} {names}".strip()
        return gettext("You need to show: {proof}").format(proof=proof)
    if len(values) > MOST_NAMED:
        counted = ngettext(
            "You need to live in {count} country",
            "You need to live in one of {count} countries",
            len(values),
        )
        return counted.format(count=len(values))
    return gettext("You need to live in {country}").format(country=names)


def counted_values(code: str) -> list[str]:
    """The names of the values that ``heading_of`` only counts. Empty if it names them."""
    claim_type, values = split_claim(code)
    if claim_type != "country_resident" or len(values) <= MOST_NAMED:
        return []
    return sorted(map(country_name, values), key=lambda name: normalize("NFD", name))


def show_value(value: str) -> str:
    """A value of a claim or a column in words: a level, a status, a country."""
    if value in WORDS or LEVEL.fullmatch(value):
        return in_words(value)
    return country_name(value)


def country_name(code: str) -> str:
    """The name of the country in the person's language, or ``code`` itself."""
    language = (get_language() or "en").lower()
    names = _countries()
    for known in (language, language.partition("-")[0], "en"):
        if known in names:
            return names[known].get(code, code)
    return code


@cache
def _countries() -> dict[str, dict[str, str]]:
    loaded: dict[str, dict[str, str]] = json.loads(
        COUNTRIES.read_text(encoding="utf-8"),
    )
    return loaded


def purpose_of(table: str) -> Text:
    """Why the site stores the records of a table."""
    return PURPOSES[table]


def table_name(table: str) -> str:
    """The name of a table that is shown or counted."""
    name: Any = TABLES.get(table)
    if name is None:
        name = apps.get_model("django_identity", table)._meta.verbose_name_plural
    return str(capfirst(name))
