"""Filters for the package's own pages. They are not public, unlike those of ``identity``.

No site has a library of this name. One that is called ``identity`` replaces ours.
"""

from datetime import datetime
from typing import Any

from django import template
from django.template.defaultfilters import yesno
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from django_identity.lifecycle.ground.values import ClaimValue
from django_identity.models import StoredClaim
from django_identity.policy.names import in_full
from django_identity.requirements import is_level
from django_identity.texts import labels
from django_identity.texts.advice import distance

register = template.Library()

register.filter(distance)
register.filter(labels.table_name)
register.filter(labels.purpose_of)
register.filter(labels.heading_of)
register.filter(labels.in_words)
register.filter(labels.counted_values)
# A Connect code may open the gate: it brings a KYC level, but no claims.
register.filter("opens_by_code", is_level)


@register.filter
def moment(at: datetime) -> SafeString:
    """A ``<time>`` element with date and time in the site's time zone."""
    exact = timezone.localtime(at).isoformat(timespec="seconds")
    return format_html('<time datetime="{}">{}</time>', exact, in_full(at))


@register.filter
def is_past(at: datetime) -> bool:
    return at <= timezone.now()


@register.filter
def value_of(claim: StoredClaim) -> bool | str | None:
    """True, or a text such as a country; None if the claim is denied: a proven claim may be."""
    return ClaimValue.of(claim).shown


@register.filter
def as_text(value: Any) -> str | Promise | SafeString:
    """One stored value as text for the page."""
    if isinstance(value, datetime):
        return format_html("{} ({})", moment(value), distance(value))
    if isinstance(value, bool):
        return str(yesno(value))
    if isinstance(value, list):
        names = [(labels.in_words(str(code)),) for code in value]
        entries = format_html_join("", "<li>{}</li>", names)
        return format_html("<ul>{}</ul>", entries)
    return str(labels.show_value(str(value)))
