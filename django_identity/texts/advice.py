"""What pages and the API say about a closed gate, an account's state, and an error."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from django.http import HttpRequest
from django.shortcuts import resolve_url
from django.urls import get_script_prefix
from django.utils import formats, timezone
from django.utils.functional import Promise
from django.utils.text import capfirst
from django.utils.timesince import timesince, timeuntil
from django.utils.translation import gettext, pgettext
from django.utils.translation import gettext_lazy as _

from django_identity import policy
from django_identity.conf import Application
from django_identity.conf.rules import SERVICE_NAME
from django_identity.exceptions import IdentityError
from django_identity.service.moments import has_no_end
from django_identity.texts import labels

if TYPE_CHECKING:
    from django_identity.lifecycle.standing import Shortfall

Text = str | Promise


@dataclass(frozen=True, slots=True)
class Advice:
    """What a page says about a reason, and its button.

    ``helps``: whether the sign-in at the service opens the gate. If it does not, the person must
    do something at the service first, and the page offers that instead.
    """

    title: Text
    sentence: Text
    step: Text
    button: Text
    helps: bool = True
    first: Text = ""


_CHECK_AGAIN = _("Check again with %(service_name)s")
_VERIFY = _("Get verified")
_NOT_CONFIRMED = Advice(
    _("Not confirmed yet"),
    _("You are connected, but %(service)s has not confirmed this about you."),
    _("Get verified there, then check again here."),
    _CHECK_AGAIN,
    helps=False,
    first=_VERIFY,
)
_NOT_VERIFIED = Advice(
    _("Not verified yet"),
    _("You are connected, but %(service)s has not verified you."),
    _("Get verified there, then check again here."),
    _CHECK_AGAIN,
    helps=False,
    first=_VERIFY,
)
# The reason of a ``Shortfall`` -> what the gate's page and the account page say.
ADVICE: Mapping[str, Advice] = {
    "not_linked": Advice(
        _("Not connected yet"),
        _("Your account is not connected to %(service)s."),
        _("Connect it: you decide there what %(site)s may know."),
        _("Connect %(service_name)s"),
    ),
    "consent_revoked": Advice(
        _("You took back your consent"),
        _("You took it back %(when)s, so the proofs about you were deleted."),
        _("Allow it again, and they come back."),
        _("Allow again"),
    ),
    "ended_by_site": Advice(
        _("Your connection was ended"),
        _("%(site)s ended your connection on %(day)s, and the proofs about you were deleted."),
        _("You can connect again."),
        _("Connect again"),
    ),
    "permission_ended": Advice(
        _("Your permission has ended"),
        _("%(site)s can no longer check your details with %(service)s."),
        _("Check again before your proofs run out, or pages that need them will close."),
        _CHECK_AGAIN,
    ),
    "permission_ends": Advice(
        _("Your permission ends soon"),
        _("On %(day)s %(site)s loses the permission to check your details."),
        _("Check again, and it continues."),
        _CHECK_AGAIN,
    ),
    "code_alone": Advice(
        _("You were verified with a code"),
        _("A code shares your verification level, and no proofs."),
        _("To bring the proofs too, continue with %(service)s."),
        _("Continue with %(service_name)s"),
    ),
    "never_proven": _NOT_CONFIRMED,
    "not_held": _NOT_CONFIRMED,
    "run_out": Advice(
        _("Your proof ran out"),
        _("It has to be confirmed again from time to time."),
        _("Check again: it takes a few seconds."),
        _CHECK_AGAIN,
    ),
    "revoked": Advice(
        _("This proof was revoked"),
        _("You revoked it, or the verification behind it no longer holds."),
        _("Get verified there again, then check again here."),
        _CHECK_AGAIN,
        helps=False,
        first=_VERIFY,
    ),
    "other_value": Advice(
        _("Your proof says something else"),
        _("It says: %(held)s."),
        _("If that is out of date, have it corrected there, then check again here."),
        _CHECK_AGAIN,
        helps=False,
        first=_("Open %(service_name)s"),
    ),
    "kyc_unknown": _NOT_VERIFIED,
    "not_verified": _NOT_VERIFIED,
    "lower_level": Advice(
        _("You are verified at a lower level"),
        _("You have: %(held)s."),
        _("Continue the verification there, then check again here."),
        _CHECK_AGAIN,
        helps=False,
        first=_("Continue the verification"),
    ),
}

A_MINUTE = 60
_NOT_SIGNED_IN = _("We could not sign you in")
_NOT_ANSWERING = _("%(service)s is not answering")
_CODE_REFUSED = _("Your code was not accepted")
# An error's code -> the title of its page, and a sentence in place of the error's public message.
# Subclasses of an error share its entry.
ERRORS: Mapping[str, tuple[Text, Text]] = {
    "identity_error": (_NOT_SIGNED_IN, ""),
    "access_denied": (
        _("You did not share anything"),
        _("Nothing was changed. You can continue whenever you like."),
    ),
    "callback_invalid": (
        _NOT_SIGNED_IN,
        _("This link is incomplete. Go back to %(site)s and start again."),
    ),
    "request_expired": (
        _NOT_SIGNED_IN,
        _("This took too long (limit: %(minutes)s minutes). Please start again."),
    ),
    "user_changed.named": (
        _NOT_SIGNED_IN,
        _("You are now signed in as %(name)s. Please start again."),
    ),
    "subject_changed": (
        _NOT_SIGNED_IN,
        _("You used a different account at %(service)s from the one connected here."),
    ),
    "form_expired": (_("This page was open too long"), _("Start again. Nothing was sent.")),
    "linked_by_code": (_("You were not signed in"), ""),
    "sign_in_not_allowed": (_("You were not signed in"), ""),
    "email_taken": (_("You have an account here"), ""),
    "consent_withdrawn": (_("You took back your consent"), ""),
    "service_error": (_NOT_ANSWERING, _("%(service)s gave an answer that %(site)s cannot use.")),
    "service_unavailable": (_NOT_ANSWERING, _("%(service)s cannot be reached at the moment.")),
    "service_timeout": (_NOT_ANSWERING, _("%(service)s took too long to answer.")),
    "rate_limited": (_NOT_ANSWERING, _("%(service)s is busy at the moment.")),
    "service_refusal": (_NOT_SIGNED_IN, _("%(service)s refused. Please start again.")),
    "environment_mismatch": (_NOT_SIGNED_IN, _("You used a live account on a test site.")),
    "environment_mismatch.live": (_NOT_SIGNED_IN, _("You used a test account on a live site.")),
    "verification_policy_not_met": (
        _("One step is missing"),
        _("%(site)s needs a verification that you do not have yet. Add it at %(service)s."),
    ),
    "verification_policy_not_met.poa": (
        _("One step is missing"),
        _("%(site)s needs proof of address. Add it at %(service)s."),
    ),
    "invalid_connect_code": (_CODE_REFUSED, ""),
    "connect_code_malformed": (_CODE_REFUSED, ""),
    "connect_code_used": (_CODE_REFUSED, ""),
    "connect_code_in_use": (_("Your code is being checked"), ""),
    "connect_outcome_unknown": (
        _NOT_ANSWERING,
        _("%(service)s did not say whether it took your code."),
    ),
    "too_many_tries": (_("Too many codes"), ""),
    "too_many_starts": (_("Too many sign-ins"), ""),
}


def service_alone(name: str) -> str:
    """The service's name on a button or in a title. The default name is translated."""
    return pgettext("the service's name", "identity") if name == SERVICE_NAME else name


def service_in_sentence(name: str) -> str:
    """The service's name inside a sentence. The default name is spelt out."""
    return gettext("the identity service") if name == SERVICE_NAME else name


def fill(text: Text, names: Mapping[str, Any]) -> str:
    """``text`` with ``names`` in its places, beginning with a capital letter."""
    return str(capfirst(str(text) % names)) if text else ""


def words_of(
    error: IdentityError, *, variant: str = "", by_code: bool = False
) -> tuple[Text, Text]:
    """The title of the error's page, and its sentence, with places for the names.

    ``variant`` chooses a more exact entry, such as ``"live"``; ``by_code``: a Connect code failed.
    """
    codes = [vars(kind).get("code", "") for kind in type(error).__mro__]
    title, sentence = next(ERRORS[code] for code in codes if code in ERRORS)
    if variant:
        title, sentence = ERRORS.get(f"{error.code}.{variant}", (title, sentence))
    if by_code and title is _NOT_SIGNED_IN:
        title = _CODE_REFUSED
    return title, sentence or error.public_message


def distance(moment: datetime) -> str:
    """The time until or since ``moment``: "in 5 hours", "3 days ago"."""
    now = timezone.now()
    if has_no_end(moment):
        return gettext("no end")
    if abs((moment - now).total_seconds()) < A_MINUTE:
        return gettext("just now")
    if moment > now:
        return gettext("in %(span)s") % {"span": timeuntil(moment, now, depth=1)}
    return gettext("%(span)s ago") % {"span": timesince(moment, now, depth=1)}


def names_for(request: HttpRequest | None, application: Application) -> dict[str, Any]:
    """The names of service and site.

    ``service`` and ``site`` stand in sentences; ``service_name`` and ``site_name`` stand alone.
    """
    site_name = policy.load(application.policy).site_name(request)
    return {
        "application": application,
        "service_name": service_alone(application.service_name),
        "service": service_in_sentence(application.service_name),
        "service_url": application.service_account_url,
        "site_name": site_name,
        "home_url": get_script_prefix(),
        "site": site_name or gettext("this site"),
    }


def page_links(application: Application) -> list[tuple[str, str]]:
    """The site's links to help, privacy and contact: text and address."""
    chosen = policy.load(application.policy)
    links = (
        (gettext("Help"), chosen.help_url),
        (gettext("Privacy"), chosen.privacy_url),
        (gettext("Contact"), chosen.contact_url),
    )
    return [(text, resolve_url(address)) for text, address in links if address]


def advice_on(
    shortfall: Shortfall | None, request: HttpRequest | None, application: Application
) -> Advice | None:
    """What a page says about ``shortfall``: title, sentence, next step and button."""
    if shortfall is None:
        return None
    since = shortfall.since
    names = names_for(request, application) | {
        "when": distance(since) if since else "",
        "day": formats.date_format(timezone.localtime(since), "DATE_FORMAT") if since else "",
        "held": labels.show_value(shortfall.held),
    }
    given = ADVICE.get(shortfall.reason, ADVICE["not_linked"])
    texts: dict[str, Any] = {
        name: fill(getattr(given, name), names)
        for name in ("title", "sentence", "step", "button", "first")
    }
    return replace(given, **texts)


def why_closed(shortfall: Shortfall | None, application: Application) -> tuple[str, ...]:
    """Why a gate is closed, and what opens it. ``None``: nobody is signed in."""
    told = advice_on(shortfall, None, application)
    if told is None:
        text = gettext("Continue with %(service)s to show it.")
        return (fill(text, names_for(None, application)),)
    return f"{told.title}.", str(told.sentence), str(told.step)
