"""A whole sign-in with Django's test client, whatever the site's settings for cookies."""

from django.conf import settings
from django.http import HttpResponseBase
from django.test import Client

from django_identity import conf
from django_identity.views.pages import address_of
from django_identity.views.sign_in import HOP_MARK


def begin(
    client: Client, application: conf.Application, *, next_url: str = "", secure: bool = True
) -> str:
    """Press the button. Returns the address at the service to which it leads."""
    leaving = client.post(address_of("login", application), {"next": next_url}, secure=secure)
    return leaving["Location"]


def come_back(client: Client, address: str, *, secure: bool = True) -> HttpResponseBase:
    """Come back from the service to ``address``. Returns the last response."""
    arrived = client.get(address, secure=secure)
    if str(settings.SESSION_COOKIE_SAMESITE).lower() != "strict" or arrived.status_code != 200:
        return arrived
    # The page that a browser leaves by itself, so that it sends the session's cookie.
    return client.get(f"{address}&{HOP_MARK}=1", secure=secure)
