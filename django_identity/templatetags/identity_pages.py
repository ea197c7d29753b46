"""What the package's own pages need of templates; no promise to sites (``identity`` is)."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

from django import template
from django.conf import settings
from django.template.defaultfilters import date as formatted_date
from django.template.defaultfilters import yesno
from django.utils import timezone
from django.utils.formats import get_format
from django.utils.functional import Promise
from django.utils.html import escape, format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.timesince import timesince, timeuntil
from django.utils.translation import gettext as _

from django_identity import labels
from django_identity.lifecycle.standing import affirmed, is_level, value_in_text
from django_identity.service.moments import bounded, has_no_end

A_MINUTE = 60

register = template.Library()


@register.filter
def distance(moment: datetime) -> str:
    """How far away ``moment`` is: "in 5 hours", "3 days ago"."""
    now = timezone.now()
    if has_no_end(moment):
        return _("no end")
    if abs((moment - now).total_seconds()) < A_MINUTE:
        return _("just now")
    if moment > now:
        return _("in %(span)s") % {"span": timeuntil(moment, now, depth=1)}
    return _("%(span)s ago") % {"span": timesince(moment, now, depth=1)}


@register.filter
def moment(given: datetime) -> SafeString:
    """An absolute time in the site's time zone, for people and machines."""
    local = timezone.localtime(bounded(given))
    if has_no_end(local):
        return escape(_("no end"))
    shown = f"{formatted_date(local, _date_and_time())} {formatted_date(local, 'T')}"
    return format_html('<time datetime="{}">{}</time>', local.isoformat(timespec="seconds"), shown)


def _date_and_time() -> str:
    """The language's own format; Django has none for Arabic, and would fall back to English."""
    together, day_alone = (get_format(name) for name in ("DATETIME_FORMAT", "DATE_FORMAT"))
    if together == settings.DATETIME_FORMAT and day_alone != settings.DATE_FORMAT:
        return f"{day_alone} {get_format('TIME_FORMAT')}"
    return str(together)


@register.filter
def day(given: datetime) -> SafeString:
    """The day of a time for people, the whole time for machines."""
    local = timezone.localtime(bounded(given))
    if has_no_end(local):
        return escape(_("no end"))
    shown = formatted_date(local, "DATE_FORMAT")
    return format_html('<time datetime="{}">{}</time>', local.isoformat(timespec="seconds"), shown)


@register.filter
def is_past(given: datetime) -> bool:
    """Whether that time has come."""
    return given <= timezone.now()


@register.filter
def opens_by_code(asked: str) -> bool:
    """Whether a Connect code may open the gate: it says the level, and proves no claim."""
    return is_level(asked)


@register.filter
def claim_value(value: Any) -> str:
    """What a claim's value says beyond its being proven, such as a country."""
    return value_in_text(value)


@register.filter
def is_affirmed(value: Any) -> bool:
    """Whether a claim's value says yes, or names something: a proof may say no."""
    return affirmed(value) is not None


@register.filter
def held(value: Any) -> str | Promise | SafeString:
    """One value of a record in words."""
    if isinstance(value, datetime):
        if has_no_end(value):
            return _("no end")
        return format_html("{} ({})", moment(value), distance(value))
    if isinstance(value, bool):
        return str(yesno(value))
    if isinstance(value, list):
        entries = format_html_join("", "<li>{}</li>", ((labels.in_words(str(v)),) for v in value))
        return format_html("<ul>{}</ul>", entries)
    if isinstance(value, dict):
        text = json.dumps(value, indent=2, ensure_ascii=False, sort_keys=True)
        return format_html('<pre dir="ltr" tabindex="0">{}</pre>', text)
    return labels.in_words(str(value)) if str(value) in labels.WORDS else str(value)
