"""What pages, the API and the admin say about a closed gate, an account's state, and an error.

``REASONS`` is the table of reasons. Its texts may have the places ``service``, ``site`` and, of the
reason, ``when``, ``day``, ``held`` and ``reference``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple

from django.http import HttpRequest
from django.shortcuts import resolve_url
from django.utils import formats, timezone
from django.utils.text import capfirst
from django.utils.timesince import timesince
from django.utils.translation import get_language, gettext
from django.utils.translation import gettext_lazy as _

from django_identity import policy
from django_identity.exceptions import IdentityError
from django_identity.exceptions.table import ERRORS, Row
from django_identity.policy.names import names_for
from django_identity.reasons import Shortfall
from django_identity.service.refusals import POLICY_CODE
from django_identity.texts import labels
from django_identity.texts.labels import Text


class Advice(NamedTuple):
    """What a page says about a reason, and its buttons.

    ``first``: what the person must do at the service before a sign-in opens the gate. Without it
    the sign-in opens the gate. ``back``: the next button leads back to the site, because another
    sign-in alone would change nothing.
    """

    title: Text
    sentence: Text
    step: Text
    button: Text
    first: Text = ""
    back: Text = ""


#: The number before a word that says it already.
ALONE = re.compile(r"^[12]\xa0")

_AGAIN = _("Check again with %(service)s")
_VERIFY = _("Get verified")
_OPEN = _("Open %(service)s")
_BACK = _("Back to %(site)s")
_THERE = _("Get verified there, then check again here.")

REASONS: Mapping[str, Advice] = {
    "not_linked": Advice(
        _("Not connected yet"),
        _("Your account is not connected to %(service)s."),
        _("Connect it: you decide there what %(site)s may know."),
        _("Connect %(service)s"),
    ),
    "consent_revoked": Advice(
        _("You took back your consent"),
        _("You took it back %(when)s, so the proofs about you were deleted."),
        _("Allow it again, and they come back."),
        _("Allow again"),
    ),
    "ended_by_site": Advice(
        _("Your connection was ended"),
        _(
            "%(site)s ended your connection on %(day)s, and the proofs about you were deleted.",
        ),
        _("You can connect again."),
        _("Connect again"),
    ),
    "permission_ended": Advice(
        _("Your permission has ended"),
        _("%(site)s can no longer check your details with %(service)s."),
        _(
            "Check again before your proofs run out, or pages that need them will close.",
        ),
        _AGAIN,
    ),
    "code_alone": Advice(
        _("You were verified with a code"),
        _("A code shares your verification level, and no proofs."),
        _("To bring the proofs too, continue with %(service)s."),
        _("Continue with %(service)s"),
    ),
    "not_confirmed": Advice(
        _("Not confirmed"),
        _("%(service)s verified you, but did not confirm this."),
        _("It may not apply to you. If you think it does, look in your account there."),
        _AGAIN,
        _OPEN,
        _BACK,
    ),
    "unread": Advice(
        _("Not read yet"),
        _("%(site)s could not read this at %(service)s."),
        _("Check again: it takes a few seconds."),
        _AGAIN,
    ),
    "unverifiable": Advice(
        _("%(site)s cannot verify this at the moment"),
        _("%(service)s sent your proofs, but a check of them failed here."),
        _(
            "Tell the people who run %(site)s. Your reference is the number %(reference)s.",
        ),
        _AGAIN,
        back=_BACK,
    ),
    "run_out": Advice(
        _("Your proof ran out"),
        _("It has to be confirmed again from time to time."),
        _("Check again: it takes a few seconds."),
        _AGAIN,
    ),
    "revoked": Advice(
        _("This proof was revoked"),
        _("You revoked it, or the verification behind it no longer holds."),
        _("Get verified there again, then check again here."),
        _AGAIN,
        _VERIFY,
    ),
    "other_value": Advice(
        _("Your proof says something else"),
        _("%(claim)s: %(held)s."),
        _("If that is out of date, have it corrected there, then check again here."),
        _AGAIN,
        _OPEN,
        _BACK,
    ),
    "not_verified": Advice(
        _("Not verified yet"),
        _("You are connected, but %(service)s has not verified enough about you."),
        _THERE,
        _AGAIN,
        _VERIFY,
    ),
    "rejected": Advice(
        _("Not accepted"),
        _("%(service)s did not accept your verification."),
        _("Open %(service)s, try again there, then come back here."),
        _AGAIN,
        _OPEN,
    ),
    "scope_not_given": Advice(
        _("You have not allowed this yet"),
        _("%(site)s may not read this about you."),
        _("You decide at %(service)s, and can take it back at any time."),
        _("Decide at %(service)s"),
    ),
    "not_recent": Advice(
        _("Confirm that it is you"),
        _("This page is for people who signed in a short while ago."),
        _("Use the same account at %(service)s as before. You come back to this page."),
        _("Confirm with %(service)s"),
    ),
    "lower_level": Advice(
        _("You are verified at a lower level"),
        _("You have: %(held)s."),
        _("Continue the verification there, then check again here."),
        _AGAIN,
        _("Continue the verification"),
    ),
}


def fill(text: Text, names: Mapping[str, Any]) -> str:
    """``text`` with ``names`` in its places, beginning with a capital letter."""
    if not text:
        return ""
    return str(capfirst(str(text) % names))


def row_of(error: IdentityError) -> Row:
    """What the table has for ``error``. Proof of address has a row of its own."""
    if getattr(error, "service_code", "").lower() == POLICY_CODE:
        return ERRORS["verification_policy_not_met.poa"]
    return ERRORS[error.code]


def words_of(error: IdentityError, request: HttpRequest | None) -> tuple[str, str]:
    """The error's own title of a page, which most errors have none of, and its sentence.

    If the policy's ``reasons`` have one for the code, it stands in place of the sentence.
    """
    names = names_for(request)
    row = row_of(error)
    reason = policy.of_site().reasons.get(error.code)
    sentence = str(reason or fill(row.sentence, names))
    return fill(row.title, names), sentence


def distance(moment: datetime | None) -> str:
    """The time until or since ``moment``: "in 5 hours", "3 days ago"; of None an empty text."""
    now = timezone.now()
    if moment is None:
        return ""
    if abs((moment - now).total_seconds()) < 60:
        return gettext("just now")
    if moment > now:
        return gettext("in %(span)s") % {"span": span(now, moment)}
    return gettext("%(span)s ago") % {"span": span(moment, now)}


def span(begins: datetime, ends: datetime) -> str:
    """The time between two moments: "5 hours", "3 days"."""
    text = timesince(begins, ends, depth=1)
    if (get_language() or "").startswith("ar"):
        # Arabic has forms for one and for two of a thing: no number stands beside them.
        return ALONE.sub("", text)
    return text


def page_links() -> list[tuple[str, str]]:
    """The site's links to help, privacy and contact: text and address."""
    rules = policy.of_site()
    links = (
        (gettext("Help"), rules.help_url),
        (gettext("Privacy"), rules.privacy_url),
        (gettext("Contact"), rules.contact_url),
    )
    return [(text, resolve_url(address)) for text, address in links if address]


def advice_on(
    shortfall: Shortfall | None,
    request: HttpRequest | None,
) -> Advice | None:
    """What a page says about ``shortfall``: title, sentence, next step and button."""
    if shortfall is None:
        return None
    names = names_for(request) | {
        "when": distance(shortfall.since),
        "day": _day_of(shortfall.since),
        "claim": labels.in_words(shortfall.claim_type),
        "held": labels.show_value(shortfall.held),
        "reference": shortfall.reference,
    }
    return Advice(*(fill(text, names) for text in REASONS[shortfall.reason]))


def _day_of(moment: datetime | None) -> str:
    if moment is None:
        return ""
    return formats.date_format(timezone.localtime(moment), "DATE_FORMAT")
