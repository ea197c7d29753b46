"""Addresses of the package's own pages."""

from django.http import HttpRequest
from django.urls import reverse

from django_identity import conf


def path_of(request: HttpRequest, *, with_query: bool = False) -> str:
    """The request's path with the site's script prefix.

    ``request.path`` lacks the prefix under ASGI if a proxy takes it away before the site.
    """
    path = request.get_full_path_info() if with_query else request.path_info
    return f"{request.META.get('SCRIPT_NAME', '').rstrip('/')}{path}"


def address_of(name: str, application: conf.Application, **query: str) -> str:
    """The path of the page ``name``, with the alias if it is not the default application.

    ``query``: what the address carries on. Empty texts are left out.
    """
    alias = [] if application.alias == conf.DEFAULT_ALIAS else [application.alias]
    given = {key: text for key, text in query.items() if text}
    return reverse(f"identity:{name}", args=alias, query=given)
