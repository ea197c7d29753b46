"""Begin a sign-in, and set the cookie that ties it to the browser."""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass, field

from django.contrib.auth.models import AbstractBaseUser
from django.http import HttpRequest, HttpResponseBase

from django_identity.conf import Application
from django_identity.lifecycle import arrival
from django_identity.models import Purpose
from django_identity.views.addresses import address_of
from django_identity.views.manners import safe_next

BROWSER_KEY = re.compile(r"[A-Za-z0-9_-]{43}")


@dataclass(frozen=True, slots=True)
class Departure:
    """The address to which the browser is sent, and the key for its cookie."""

    address: str
    browser_key: str = field(repr=False)


def depart(
    request: HttpRequest,
    application: Application,
    *,
    purpose: Purpose,
    user: AbstractBaseUser | None,
    next_url: str,
) -> Departure:
    """Begin a sign-in for this browser; its response goes through ``leave_key``."""
    browser_key = browser_key_of(request) or secrets.token_urlsafe(32)
    journey = arrival.Journey(
        purpose=purpose,
        user=user,
        next_url=safe_next(next_url),
        redirect_uri=application.redirect_uri
        or request.build_absolute_uri(address_of("callback", application)),
    )
    return Departure(arrival.begin(application, journey, browser_key=browser_key), browser_key)


def leave_key(
    response: HttpResponseBase,
    departure: Departure,
    *,
    request: HttpRequest,
    application: Application,
) -> None:
    """Set the browser's cookie, for as long as a sign-in may take."""
    response.set_cookie(
        _cookie_name(request),
        departure.browser_key,
        max_age=application.authorization_lifetime,
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
