"""Who calls: an operator of the sandbox, or anybody else.

Whoever calls on this machine is an operator, and whoever knows the control token. An operator uses
the control API, the console and the test people, whose password is known to all.
"""

import ipaddress
from collections.abc import Callable
from functools import wraps
from urllib.parse import urlsplit

from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, resolve_url
from django.utils.crypto import constant_time_compare
from django.utils.http import urlencode

COOKIE = "sandbox_operator"
# What tunnels and proxies add. One that adds nothing cannot be told from this machine; whoever
# runs it says `--origin`, and then the token alone counts.
_ADDED_ON_THE_WAY = (
    "X_FORWARDED",
    "FORWARDED",
    "VIA",
    "X_REAL_IP",
    "X_CLIENT_IP",
    "CLIENT_IP",
    "TRUE_CLIENT_IP",
    "X_ORIGINAL",
    "X_ENVOY",
    "CF_",
    "FASTLY_",
    "FLY_",
    "NGROK",
    "TAILSCALE_",
)

Page = Callable[..., HttpResponseBase]


def is_operator(request: HttpRequest) -> bool:
    """Return whether an operator's browser or program calls."""
    if is_local(request) or is_control_token(bearer(request)):
        return True
    return bool(request.get_signed_cookie(COOKIE, default="", salt=COOKIE))


def may_control(request: HttpRequest) -> bool:
    """Return whether the control API answers: never to a web page without the token."""
    site = request.headers.get("Sec-Fetch-Site", "none")
    is_of_a_page = "Origin" in request.headers or site not in {"none", "same-origin"}
    return is_control_token(bearer(request)) or (is_local(request) and not is_of_a_page)


def operators_only(page: Page) -> Page:
    """Show ``page`` to operators only. Others are asked for the control token."""

    @wraps(page)
    def view(request: HttpRequest, *args: object, **kwargs: object) -> HttpResponseBase:
        if is_operator(request):
            return page(request, *args, **kwargs)
        address = ""
        if request.method == "GET":
            address = request.get_full_path()
        return redirect(f"{resolve_url('operator')}?{urlencode({'next': address})}")

    return view


def remember(request: HttpRequest, response: HttpResponse) -> None:
    """Let the browser that gets ``response`` be an operator's, until the process ends."""
    response.set_signed_cookie(
        COOKIE,
        "1",
        salt=COOKIE,
        httponly=True,
        samesite="Lax",
        secure=request.is_secure(),
    )


def bearer(request: HttpRequest) -> str:
    """Return the request's Bearer token, or nothing."""
    scheme, _space, token = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() != "bearer":
        return ""
    return token.strip()


def is_control_token(text: str) -> bool:
    """Return whether ``text`` is the control token. Without one, nothing is."""
    token = settings.SANDBOX_CONTROL_TOKEN
    return bool(token) and constant_time_compare(text, token)


def is_local(request: HttpRequest) -> bool:
    """Return whether this machine calls, by a loopback name and with no trace of a proxy.

    Nobody is local to a sandbox that is advertised under another name: a proxy on this machine
    may pass requests on without a trace.
    """
    host = name_of(f"//{request.META.get('HTTP_HOST', '')}")
    names = (
        str(request.META.get("REMOTE_ADDR", "")),
        host,
        name_of(settings.SANDBOX_ORIGIN),
    )
    headers = (
        name.removeprefix("HTTP_") for name in request.META if name.startswith("HTTP_")
    )
    return all(map(is_loopback, names)) and not any(
        name.startswith(_ADDED_ON_THE_WAY) for name in headers
    )


def name_of(address: str) -> str:
    """Return the host that ``address`` names, or nothing."""
    try:
        return urlsplit(address).hostname or ""
    except ValueError:
        return ""


def is_loopback(name: str) -> bool:
    """Return whether ``name`` is this machine's under any resolver."""
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        return name.removesuffix(".") == "localhost"
    mapped = getattr(address, "ipv4_mapped", None)
    return (mapped or address).is_loopback
