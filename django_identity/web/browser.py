"""The browser's part of a sign-in: its cookie, and where the service leads it back."""

import re
import secrets
from urllib.parse import urlsplit

from django.contrib.auth.models import AbstractBaseUser
from django.http import HttpRequest, HttpResponseBase
from django.urls import NoReverseMatch

from django_identity import conf
from django_identity.lifecycle.arriving import sign_in
from django_identity.lifecycle.standing import step_up
from django_identity.logs import LogEvent, log
from django_identity.models import Purpose
from django_identity.web import flow
from django_identity.web.pages import address_of
from django_identity.web.sessions import begin_session

HOP_MARK = "same_site"
#: Seconds: as long as a sign-in that is over is known.
COOKIE_LIFETIME = 86400
BROWSER_KEY = re.compile(r"[A-Za-z0-9_-]{43}")


def begin_sign_in(
    request: HttpRequest,
    *,
    next_url: str,
    more: str,
) -> tuple[str, str]:
    """Begin a sign-in for this browser. ``next_url`` is a page to which it may lead.

    ``more``: a scope of ``LATER_SCOPES``; any other text asks for nothing more.

    Returns the address to which the browser is sent, and the key for ``set_cookie``.
    """
    browser_key = browser_key_of(request) or secrets.token_urlsafe(32)
    redirect_uri = conf.application().redirect_uri
    if redirect_uri is None:
        redirect_uri = request.build_absolute_uri(address_of("callback"))
    address = sign_in.begin(
        user=flow.signed_in_user(request),
        next_url=next_url,
        redirect_uri=redirect_uri,
        browser_key=browser_key,
        more=more,
    )
    return address, browser_key


def complete_sign_in(
    request: HttpRequest,
    returned: sign_in.Callback,
    *,
    user: AbstractBaseUser | None,
) -> sign_in.Completed:
    """Complete a sign-in. Sign the browser in if it grants a session, and note the return.

    ``user``: who is signed in here already.
    """
    browser_key = browser_key_of(request)
    completed = sign_in.complete(returned, browser_key=browser_key, user=user)
    linked = completed.linked
    if linked is not None:
        former_key = request.session.session_key
        if completed.purpose == Purpose.SIGN_IN:
            begin_session(request, linked.user, linked)
        step_up.note_return(request.session, linked, former_key=former_key)
    log(LogEvent.SIGN_IN_COMPLETED)
    return completed


def leads_back_to_a_page() -> bool:
    """Whether the service leads people back to our callback page, and not to one of a front end."""
    redirect_uri = conf.application().redirect_uri
    if redirect_uri is None:
        return True
    # The origin may be another than this request's: that is why a site sets the address.
    path = urlsplit(redirect_uri).path
    try:
        return path == address_of("callback")
    except NoReverseMatch:
        return False


def set_cookie(response: HttpResponseBase, key: str, *, request: HttpRequest) -> None:
    """Set the browser's cookie. Who comes back too late starts again with the page they wanted."""
    response.set_cookie(
        _cookie_name(request),
        key,
        max_age=COOKIE_LIFETIME,
        secure=request.is_secure(),
        httponly=True,
        samesite="Lax",
    )


def browser_key_of(request: HttpRequest) -> str | None:
    """The key in the browser's cookie, or None."""
    # As the browser sent it. Django also takes a name behind a space of Unicode, where browsers see
    # no prefix: another host of the domain could set it, and sign people in as somebody else.
    for cookie in request.META.get("HTTP_COOKIE", "").split(";"):
        name, _, key = cookie.strip(" ").partition("=")
        if name == _cookie_name(request) and BROWSER_KEY.fullmatch(key):
            return str(key)
    return None


def _cookie_name(request: HttpRequest) -> str:
    """The cookie's name. Over https it has the prefix that stops other hosts of the domain."""
    if request.is_secure():
        return "__Host-identity_browser"
    return "identity_browser"
