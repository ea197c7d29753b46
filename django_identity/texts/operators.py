"""Texts for operators: names of codes, times and reasons."""

import json
import re
from datetime import datetime, timedelta

from django.contrib.auth.models import AbstractBaseUser
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from django_identity import database
from django_identity.models import Environment
from django_identity.texts.advice import distance, span

Words = str | Promise

# A subject is recognised by its beginning and its end.
BEGINNING = 6
END = 4
MINUTE = timedelta(minutes=1)
# The user names of accounts that the package makes.
GENERATED = re.compile(r"identity-[0-9a-f]{32}")


def person_name(user: AbstractBaseUser, may_see: bool) -> str:
    """The person's user name.

    A generated user name is replaced by the e-mail address. Without ``may_see`` (the permission to
    see users) no e-mail address is shown.
    """
    name = user.get_username()
    email = database.email_of(user)
    if not GENERATED.fullmatch(name):
        if may_see or "@" not in name:
            return name
    elif may_see and email:
        return email
    return gettext("user #%(number)s") % {"number": user.pk}


def as_json(value: object) -> str:
    """What the service wrote, with each control character as its code: none may reorder text."""
    text = json.dumps(value, ensure_ascii=False, indent=2)
    return "".join(map(_visible, text))


def _visible(character: str) -> str:
    if character.isprintable() or character == "\n":
        return character
    return f"\\u{ord(character):04x}"


def short_subject(subject: str) -> SafeString:
    """The beginning and the end of a subject, with the full subject as a tooltip."""
    is_long = len(subject) > BEGINNING + END + 1
    shown = subject
    if is_long:
        shown = f"{subject[:BEGINNING]}…{subject[-END:]}"
    return format_html(
        '<bdi class="identity-subject" title="{}">{}</bdi>',
        subject,
        shown,
    )


def validity(until: datetime | None) -> str:
    """For how long it is valid, or since when not: "valid for 5 hours", "ran out 3 days ago"."""
    if until is None:
        return ""
    now = timezone.now()
    if until <= now:
        return gettext("ran out %(when)s") % {"when": distance(until)}
    return gettext("valid for %(span)s") % {"span": span(now, until)}


def due(at: datetime | None) -> str:
    """When something is due: "in 5 minutes", "was due 3 hours ago", "never".

    What is due within a minute has not been "just now".
    """
    if at is None:
        return gettext("never")
    now = timezone.now()
    if at > now:
        until = max(at, now + MINUTE)
        return gettext("in %(span)s") % {"span": span(now, until)}
    return gettext("was due %(when)s") % {"when": distance(at)}


def warning_badge(text: Words) -> SafeString:
    return format_html('<span class="identity-badge identity-closed">{}</span>', text)


def environment_badge(environment: str) -> SafeString:
    if environment == Environment.LIVE:
        return format_html('<span class="identity-badge">{}</span>', _("live"))
    return format_html(
        '<span class="identity-badge identity-badge-test">{}</span>',
        _("TEST DATA"),
    )
