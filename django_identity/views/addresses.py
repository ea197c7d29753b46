"""Addresses of the package's own pages, with the application's alias where it is needed."""

from __future__ import annotations

from urllib.parse import urlencode

from django.urls import reverse

from django_identity import conf


def address_of(name: str, application: conf.Application) -> str:
    """The path of the page ``name``; the default application goes without its alias."""
    is_default = application.alias == conf.DEFAULT_ALIAS
    return reverse(f"identity:{name}", args=[] if is_default else [application.alias])


def login_url(application: conf.Application, *, next_url: str = "", missing: str = "") -> str:
    """The login page, told where the person wanted to go and which proof they lack."""
    query = {"next": next_url, "missing": missing}
    given = urlencode({name: value for name, value in query.items() if value})
    address = address_of("login", application)
    return f"{address}?{given}" if given else address
