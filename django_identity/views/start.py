"""Begin a sign-in, and set the cookie that ties it to the browser."""

from __future__ import annotations

import re
import secrets

from django.contrib.auth.models import AbstractBaseUser
from django.http import HttpRequest, HttpResponseBase

from django_identity.conf import Application
from django_identity.lifecycle import arrival
from django_identity.models import Purpose
from django_identity.views.addresses import address_of
from django_identity.views.flow import client_address, safe_next

BROWSER_KEY = re.compile(r"[A-Za-z0-9_-]{43}")


def begin_sign_in(
    request: HttpRequest,
    application: Application,
    *,
    purpose: Purpose,
    user: AbstractBaseUser | None,
    next_url: str,
) -> tuple[str, str]:
    """Begin a sign-in for this browser.

    Returns the address to which the browser is sent, and the key for ``set_browser_cookie``.
    """
    browser_key = browser_key_of(request) or secrets.token_urlsafe(32)
    intent = arrival.SignInIntent(
        purpose=purpose,
        user=user,
        next_url=safe_next(next_url),
        redirect_uri=application.redirect_uri
        or request.build_absolute_uri(address_of("callback", application)),
    )
    origin = client_address(request, application)
    return arrival.begin(application, intent, browser_key=browser_key, address=origin), browser_key


def set_browser_cookie(
    response: HttpResponseBase, browser_key: str, *, request: HttpRequest
) -> None:
    """Set the browser's cookie, for as long as a sign-in may take."""
    response.set_cookie(
        _cookie_name(request),
        browser_key,
        max_age=arrival.SIGN_IN_LIFETIME,
        secure=request.is_secure(),
        httponly=True,
        samesite="Lax",
    )


def browser_key_of(request: HttpRequest) -> str | None:
    """The key in this browser's cookie, if any."""
    key = request.COOKIES.get(_cookie_name(request), "")
    return key if BROWSER_KEY.fullmatch(key) else None


def _cookie_name(request: HttpRequest) -> str:
    """The cookie's name. Over https it has the prefix that stops other hosts of the domain."""
    return "__Host-identity_browser" if request.is_secure() else "identity_browser"
