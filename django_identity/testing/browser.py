"""A whole sign-in with Django's test client, whatever the site's settings for cookies."""

from urllib.parse import urlsplit

from django.conf import settings
from django.http import HttpResponseBase
from django.test import Client

from django_identity import conf
from django_identity.testing.sandbox import RunningSandbox, SandboxPerson
from django_identity.views.addresses import address_of
from django_identity.views.sign_in import HOP_MARK

SITES = ("http://testserver", "https://testserver")


def sign_in(
    client: Client,
    application: conf.Application,
    sandbox: RunningSandbox,
    person: SandboxPerson,
    *,
    next_url: str = "",
) -> HttpResponseBase:
    """Press the button, approve at ``sandbox``, and come back, over https.

    Returns the last response.
    """
    leaving = client.post(address_of("login", application), {"next": next_url}, secure=True)
    back = urlsplit(sandbox.approve(leaving["Location"], person))
    address = f"{back.path}?{back.query}"
    arrived = client.get(address, secure=True)
    if settings.SESSION_COOKIE_SAMESITE != "Strict" or arrived.status_code != 200:
        return arrived
    # The page that a browser leaves by itself, so that it sends the session's cookie.
    return client.get(f"{address}&{HOP_MARK}=1", secure=True)
