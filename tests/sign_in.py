"""A sign-in at the fake service by the testing kit's driver: the button, and the way back."""

from urllib.parse import parse_qs, urlsplit

from django.http import HttpResponseBase
from django.test import Client

from django_identity.testing import browser
from django_identity.web.pages import address_of


def begin(client: Client, next_url: str = "") -> str:
    """Press the button; returns the state that went to the service."""
    address = browser.begin(client, next_url=next_url, secure=False)
    return parse_qs(urlsplit(address).query)["state"][0]


def come_back(client: Client, state: str, **query: str) -> HttpResponseBase:
    given = {"code": "a-code", "state": state, **query}
    address = address_of("callback", **given)
    return browser.come_back(client, address, secure=False)


def sign_in(client: Client, next_url: str = "") -> HttpResponseBase:
    state = begin(client, next_url)
    return come_back(client, state)


def is_signed_in(client: Client) -> bool:
    """Whether somebody is signed in in this browser."""
    return signed_in_as(client) != ""


def signed_in_as(client: Client) -> str:
    """Whom the tests' home page names."""
    return client.get("/").content.decode()
