"""Names and sentences for people that pages and the API share."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from django.http import HttpRequest
from django.shortcuts import resolve_url
from django.urls import get_script_prefix
from django.utils import formats, timezone
from django.utils.timesince import timesince, timeuntil
from django.utils.translation import gettext

from django_identity import policy
from django_identity.conf import Application
from django_identity.service.moments import has_no_end
from django_identity.texts import advice, labels

if TYPE_CHECKING:
    from django_identity.lifecycle.standing import Shortfall

A_MINUTE = 60


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
    """The names of service and site, and the site's links to help, privacy and contact.

    ``service`` and ``site`` stand in sentences; ``service_name`` and ``site_name`` stand alone.
    """
    chosen = policy.load(application.policy)
    site_name = chosen.site_name(request)
    links = (
        (gettext("Help"), chosen.help_url),
        (gettext("Privacy"), chosen.privacy_url),
        (gettext("Contact"), chosen.contact_url),
    )
    return {
        "application": application,
        "service_name": advice.service_alone(application.service_name),
        "service": advice.service_in_sentence(application.service_name),
        "service_url": application.service_account_url,
        "site_name": site_name,
        "home_url": get_script_prefix(),
        "site": site_name or gettext("this site"),
        "page_links": [(text, resolve_url(address)) for text, address in links if address],
    }


def advice_on(
    shortfall: Shortfall | None, request: HttpRequest | None, application: Application
) -> advice.Advice | None:
    """What a page says about ``shortfall``: title, sentence, next step and button."""
    if shortfall is None:
        return None
    since = shortfall.since
    names = names_for(request, application) | {
        "when": distance(since) if since else "",
        "day": formats.date_format(timezone.localtime(since), "DATE_FORMAT") if since else "",
        "held": labels.show_value(shortfall.held),
    }
    given = advice.ADVICE.get(shortfall.reason, advice.ADVICE["not_linked"])
    texts: dict[str, Any] = {
        name: advice.fill(getattr(given, name), names)
        for name in ("title", "sentence", "step", "button", "first")
    }
    return replace(given, **texts)


def why_closed(shortfall: Shortfall | None, application: Application) -> tuple[str, ...]:
    """Why a gate is closed, and what opens it. ``None``: nobody is signed in."""
    told = advice_on(shortfall, None, application)
    if told is None:
        text = gettext("Continue with %(service)s to show it.")
        return (advice.fill(text, names_for(None, application)),)
    return f"{told.title}.", str(told.sentence), str(told.step)
