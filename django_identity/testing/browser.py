"""A whole sign-in with Django's test client, whatever the site's settings for https and cookies."""

from collections.abc import Callable
from typing import TypeVar
from urllib.parse import urlsplit

from django.conf import settings
from django.http import HttpResponseBase
from django.test import Client

from django_identity import conf
from django_identity.testing.sandbox import RunningSandbox, SandboxPerson
from django_identity.views.addresses import address_of
from django_identity.views.sign_in import HOP_MARK

Response = TypeVar("Response", bound=HttpResponseBase)

SITES = ("http://testserver", "https://testserver")


def sign_in(
    client: Client,
    application: conf.Application,
    sandbox: RunningSandbox,
    person: SandboxPerson,
    *,
    next_url: str = "",
) -> HttpResponseBase:
    """Press the button, approve at ``sandbox``, and come back. Returns the last response."""
    leaving = over_https(client.post, address_of("login", application), {"next": next_url})
    back = urlsplit(sandbox.approve(leaving["Location"], person))
    address = f"{back.path}?{back.query}"
    arrived = over_https(client.get, address)
    if settings.SESSION_COOKIE_SAMESITE != "Strict" or arrived.status_code != 200:
        return arrived
    # The page that a browser leaves by itself, so that it sends the session's cookie.
    return over_https(client.get, f"{address}&{HOP_MARK}=1")


def over_https(
    send: Callable[..., Response], address: str, *given: object, **options: object
) -> Response:
    """The answer to a request, sent again over https if the site redirects it there."""
    response = send(address, *given, **options)
    leads_to = urlsplit(response.headers.get("Location", ""))
    is_same = address.partition("?")[0] == leads_to.path
    if response.status_code in (301, 302, 307, 308) and leads_to.scheme == "https" and is_same:
        return send(address, *given, secure=True, **options)
    return response
