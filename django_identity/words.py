"""What the service's codes are called in words, for people."""

from __future__ import annotations

from collections.abc import Mapping

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

WORDS: Mapping[str, str | Promise] = {
    "profile:read": _("Your name, e-mail address, country and photo"),
    "kyc:read": _("Whether and how well your identity has been verified"),
    "claims:read": _("Signed proofs about you, such as being 18 or older"),
    "documents:metadata": _("Which documents you have verified, without their content"),
    "documents:read": _("The content of your identity documents, encrypted for this site"),
    "profile:basic": _("Your name, e-mail address and country"),
    "kyc:status": _("Whether and how well your identity has been verified"),
    "kyc_verified": _("your identity has been verified"),
    "age_over_18": _("you are 18 or older"),
    "country_resident": _("your country of residence"),
    "unique_human": _("you are one person with one account"),
    "level_1": _("verification at level 1"),
    "level_2": _("verification at level 2"),
}


def in_words(code: str) -> str | Promise:
    """``code`` in the person's language; a code without words stays as it is."""
    return WORDS.get(code, code)
