"""A sign-in as the site sees it: the button, and the way back with a code."""

from urllib.parse import parse_qs, urlsplit

from django.http import HttpResponse
from django.test import Client
from django.urls import reverse


def begin(client: Client, next_url: str = "") -> str:
    """Press the button; returns the state that went to the service."""
    response = client.post(reverse("identity:login"), {"next": next_url})
    assert response.status_code == 302
    return parse_qs(urlsplit(response["Location"]).query)["state"][0]


def come_back(client: Client, state: str, **query: str) -> HttpResponse:
    given = {"code": "a-code", "state": state, **query}
    return client.get(reverse("identity:callback"), given)


def sign_in(client: Client, next_url: str = "") -> HttpResponse:
    return come_back(client, begin(client, next_url))


def is_signed_in(browser: Client) -> bool:
    """Whether somebody is signed in in this browser: the tests' home page names them."""
    return browser.get("/").content != b""
