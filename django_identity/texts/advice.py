"""What pages and the API say about a closed gate, an account's state, and an error."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from django.apps import apps
from django.conf import settings
from django.contrib.sites.shortcuts import get_current_site
from django.http import HttpRequest
from django.shortcuts import resolve_url
from django.urls import get_script_prefix
from django.utils import formats, timezone
from django.utils.text import capfirst
from django.utils.timesince import timesince, timeuntil
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from django_identity import policy
from django_identity.conf import Application
from django_identity.conf.rules import SERVICE_NAME
from django_identity.error_table import ERRORS
from django_identity.exceptions import IdentityError
from django_identity.service.moments import has_no_end
from django_identity.service.refusals import POLICY_CODE
from django_identity.texts import labels
from django_identity.texts.reasons import REASONS, Advice, Text

if TYPE_CHECKING:
    from django_identity.lifecycle.standing import Shortfall

A_MINUTE = 60


def service_name_of(application: Application) -> str:
    """The service's name for people. The default name is translated."""
    name = application.service_name
    return gettext("your identity service") if name == SERVICE_NAME else name


def fill(text: Text, names: Mapping[str, Any]) -> str:
    """``text`` with ``names`` in its places, beginning with a capital letter."""
    return str(capfirst(str(text) % names)) if text else ""


def words_of(
    error: IdentityError,
    request: HttpRequest | None,
    application: Application,
    *,
    by_code: bool = False,
) -> tuple[str, str]:
    """The title of the error's page, and its sentence. ``by_code``: a Connect code failed."""
    user = getattr(request, "user", None)
    names = names_for(request, application) | {"name": str(user)}
    row = ERRORS[error.code]
    if error.code == "user_changed" and user is not None and user.is_authenticated:
        row = ERRORS["user_changed.named"]
    elif getattr(error, "service_code", "") == POLICY_CODE:
        row = ERRORS["verification_policy_not_met.poa"]
    failed = _("Your code was not accepted") if by_code else _("We could not sign you in")
    return fill(row.title or failed, names), fill(row.sentence, names)


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


def site_name_of(request: HttpRequest | None, application: Application) -> str:
    """The site's name by its policy or ``django.contrib.sites``, or an empty text."""
    if given := policy.load(application.policy).site_name:
        return str(given)
    if not apps.is_installed("django.contrib.sites"):
        return ""
    if request is None and not hasattr(settings, "SITE_ID"):
        return ""
    return str(get_current_site(request).name)


def names_for(request: HttpRequest | None, application: Application) -> dict[str, Any]:
    """The names of service and site.

    ``site`` stands in sentences; ``site_name`` stands alone, and may be empty.
    """
    site_name = site_name_of(request, application)
    return {
        "application": application,
        "service": service_name_of(application),
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
        "claim": labels.in_words(shortfall.claim_type),
        "held": labels.show_value(shortfall.held),
    }
    given = REASONS[shortfall.reason]
    texts: dict[str, Any] = {
        name: fill(getattr(given, name), names)
        for name in ("title", "sentence", "step", "button", "first")
    }
    return replace(given, **texts)


def why_closed(shortfall: Shortfall | None, asked: str, application: Application) -> str:
    """Why the gate for ``asked`` is closed, and what opens it. ``None``: nobody is signed in."""
    told = advice_on(shortfall, None, application)
    if told is None:
        names = names_for(None, application) | {"proof": labels.in_words(asked)}
        return fill(gettext("Continue with %(service)s to show: %(proof)s."), names)
    return f"{told.title}. {told.sentence} {told.step}"
