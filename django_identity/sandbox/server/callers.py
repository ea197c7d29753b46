"""Who calls: somebody on this machine, the operator by the token, or anybody else."""

import ipaddress
from urllib.parse import urlsplit

from django.conf import settings
from django.http import HttpRequest
from django.utils.crypto import constant_time_compare

# What tunnels and proxies add. One that adds nothing cannot be told from this machine; whoever
# runs it says `--origin`, and then the token alone counts.
_ADDED_ON_THE_WAY = (
    "X_FORWARDED", "FORWARDED", "VIA", "X_REAL_IP", "X_CLIENT_IP", "CLIENT_IP", "TRUE_CLIENT_IP",
    "X_CLUSTER_CLIENT_IP", "X_ORIGINAL", "X_REMOTE", "X_PROXY", "X_ENVOY", "CF_", "FASTLY_",
    "FLY_", "NGROK", "TAILSCALE_",
)  # fmt: skip


def is_token(text: str) -> bool:
    """Return whether ``text`` is the token that the operator saw at the start."""
    return constant_time_compare(text, settings.SANDBOX_PORTAL_TOKEN)


def has_token(request: HttpRequest) -> bool:
    """Return whether the request carries the token as Bearer."""
    return is_token(_bearer(request))


def may_control(request: HttpRequest) -> bool:
    """Return whether the request may use the control API.

    With a control token, that token alone counts. Without one, this machine may, except for web
    pages in its browsers, and so may whoever has the operator's token.
    """
    if settings.SANDBOX_CONTROL_TOKEN:
        return constant_time_compare(_bearer(request), settings.SANDBOX_CONTROL_TOKEN)
    return (is_local(request) and not _is_of_a_page(request)) or has_token(request)


def _bearer(request: HttpRequest) -> str:
    """Return the request's Bearer token, or nothing."""
    scheme, _space, token = request.headers.get("Authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def _is_of_a_page(request: HttpRequest) -> bool:
    """Return whether the request comes from a web page in a browser."""
    site = request.headers.get("Sec-Fetch-Site", "none")
    return "Origin" in request.headers or site not in {"none", "same-origin"}


def is_local(request: HttpRequest) -> bool:
    """Return whether this machine calls, by a loopback name and with no trace of a proxy.

    Nobody is local to a sandbox that is advertised under another name: a proxy on this machine
    may pass requests on without a trace.
    """
    remote = str(request.META.get("REMOTE_ADDR", ""))
    names = (remote, name_of(f"//{request.META.get('HTTP_HOST', '')}"))
    return all(
        is_loopback(name) for name in (*names, name_of(settings.SANDBOX_ORIGIN))
    ) and not any(
        name.removeprefix("HTTP_").startswith(_ADDED_ON_THE_WAY)
        for name in request.META
        if name.startswith("HTTP_")
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
