"""A whole sign-in with Django's test client, whatever the site's settings for cookies."""

from urllib.parse import urlsplit

from django.http import HttpResponseBase
from django.test import Client
from django.urls import get_script_prefix

from django_identity.web.browser import HOP_MARK
from django_identity.web.pages import address_of


def begin(
    client: Client,
    *,
    next_url: str = "",
    secure: bool = True,
) -> str:
    """Press the button. Returns the address at the service to which it leads."""
    page = path_here(address_of("login"))
    leaving = client.post(page, {"next": next_url}, secure=secure)
    return leaving["Location"]


def come_back(client: Client, address: str, *, secure: bool = True) -> HttpResponseBase:
    """Come back from the service to ``address``. Returns the last response, or a refusal's page."""
    address = path_here(address)
    arrived = client.get(address, secure=secure)
    if arrived.status_code == 200:
        # The one page of the callback: a browser leaves it by itself, and sends a strict cookie.
        arrived = client.get(f"{address}&{HOP_MARK}=1", secure=secure)
    answer = address_of("answer")
    if arrived.headers.get("Location") == answer:
        return client.get(path_here(answer), secure=secure)
    return arrived


def path_here(address: str) -> str:
    """``address`` as the test client takes it: host and ``FORCE_SCRIPT_NAME`` are cut."""
    parts = urlsplit(address)
    path = "/" + parts.path.removeprefix(get_script_prefix()).removeprefix("/")
    if parts.query:
        return f"{path}?{parts.query}"
    return path
