"""The e-mails that tell the account's owner about a link and its changes.

They are sent after the commit, so a sign-in succeeds whatever the mail server does. The time-out of
Django's mail settings says how long it waits.
"""

from typing import Any
from unicodedata import category

from django.apps import apps
from django.conf import settings
from django.contrib.auth.models import AbstractBaseUser
from django.contrib.sites.shortcuts import get_current_site
from django.utils import timezone

from django_identity import conf, database, policy
from django_identity.conf.rules import origin_of
from django_identity.logs import LogEvent, log_trouble
from django_identity.policy.names import in_full, names_for
from django_identity.service.answers import Profile

LONGEST_NAME = 20
LONGEST_DOMAIN = 40


def send_on_commit(user: AbstractBaseUser, *, change: str, **facts: Any) -> None:
    """Send the policy's notice of ``change`` to ``user`` after the commit."""

    def send() -> None:
        try:
            names = names_for(None)
            context = facts | {
                name: names[name] for name in ("service", "site", "site_name")
            }
            context["site_address"] = _site_address()
            context["at"] = in_full(timezone.now())
            notice = policy.of_site().notice(user, change=change, **context)
            if notice:
                notice.send()
        except Exception as error:  # noqa: BLE001  the site's own code and any mail backend; the change stands
            log_trouble(LogEvent.LINK_NOTICE_FAILED, error)

    database.on_commit(send)


def _site_address() -> str:
    """The site's origin as far as the settings tell it, or an empty text. There is no request."""
    redirect_uri = conf.application().redirect_uri
    if redirect_uri:
        return origin_of(redirect_uri)
    if apps.is_installed("django.contrib.sites") and hasattr(settings, "SITE_ID"):
        return f"https://{get_current_site(None).domain}"
    return ""


def masked(profile: Profile) -> str:
    """First name, initial and masked e-mail address, if known.

    At most 128 characters, enough to recognise a person: ``"Ada O., a***@example.org"``.
    """
    initial = _of_name(profile.last_name)[:1]
    if initial:
        initial += "."
    first_name = _of_name(profile.first_name)[:LONGEST_NAME]
    name = f"{first_name} {initial}".strip()
    address = masked_address(profile.email)
    return ", ".join(part for part in (name, address) if part)


def masked_address(address: str) -> str:
    """The address as its owner recognises it, ``"a***@example.org"``, or an empty text."""
    local, _, domain = address.rpartition("@")
    if not local or not domain or not address.isprintable():
        return ""
    if len(domain) > LONGEST_DOMAIN:
        return ""
    first = ""
    if len(local) > 1:
        # One letter would be the whole of it.
        first = local[0]
    return f"{first}***@{domain}"


def _of_name(text: str) -> str:
    """The letters of a name. Whoever planted the link has chosen them, and an e-mail shows them.

    So addresses of pages and telephone numbers are left out.
    """
    letters = [each if _is_of_name(each) else " " for each in text]
    return " ".join("".join(letters).split())


def _is_of_name(character: str) -> bool:
    # Letters and their marks, of any script.
    return character in "-'\u2019" or category(character)[0] in "LM"
