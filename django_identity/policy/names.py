"""The names of service and site, and a moment in full, as pages and e-mails have them."""

from datetime import datetime
from typing import Any

from django.apps import apps
from django.conf import settings
from django.contrib.sites.shortcuts import get_current_site
from django.http import HttpRequest
from django.urls import get_script_prefix
from django.utils import formats, timezone
from django.utils.translation import gettext

from django_identity import conf, database, policy
from django_identity.conf.rules import SERVICE_NAME


def site_name_of(request: HttpRequest | None) -> str:
    """The site's name by its policy or ``django.contrib.sites``, or an empty text."""
    name = policy.of_site().site_name
    if name:
        return str(name)
    is_known = request is not None or hasattr(settings, "SITE_ID")
    if not is_known or not apps.is_installed("django.contrib.sites"):
        return ""
    try:
        return str(get_current_site(request).name)
    except database.BROKEN:
        # A page may be about just that: the database is away.
        return ""


def names_for(request: HttpRequest | None) -> dict[str, Any]:
    """The names of service and site.

    ``site`` stands in sentences; ``site_name`` stands alone, and may be empty.
    """
    application = conf.application()
    site_name = site_name_of(request)
    return {
        "application": application,
        "service": service_name_of(),
        "service_url": application.service_account_url,
        "site_name": site_name,
        "home_url": get_script_prefix(),
        "site": site_name or gettext("this site"),
    }


def service_name_of() -> str:
    """The service's name for people. The default name is translated."""
    name = conf.application().service_name
    if name == SERVICE_NAME:
        return gettext("your identity service")
    return name


def in_full(moment: datetime) -> str:
    """Date, time and zone, in the site's time zone."""
    local = timezone.localtime(moment)
    # Not ``DATETIME_FORMAT``: it has no zone, and Django has none for Arabic.
    shape = f"{formats.get_format('DATE_FORMAT')} {formats.get_format('TIME_FORMAT')} T"
    return formats.date_format(local, shape)
