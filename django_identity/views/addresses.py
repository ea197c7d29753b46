"""Addresses of the package's own pages."""

from __future__ import annotations

from urllib.parse import urlencode

from django.urls import reverse

from django_identity import conf


def address_of(name: str, application: conf.Application) -> str:
    """The path of the page ``name``, with the alias if it is not the default application."""
    is_default = application.alias == conf.DEFAULT_ALIAS
    return reverse(f"identity:{name}", args=[] if is_default else [application.alias])


def login_url(application: conf.Application, *, next_url: str = "", missing: str = "") -> str:
    """The login page with the page that the person wanted and the missing proof."""
    query = {"next": next_url, "missing": missing}
    given = urlencode({name: value for name, value in query.items() if value})
    address = address_of("login", application)
    return f"{address}?{given}" if given else address
