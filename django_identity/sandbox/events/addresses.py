"""Check webhook addresses: public ones, unless this machine or the operator allows others."""

import ipaddress
import socket
from collections.abc import Iterator
from ipaddress import IPv4Address, IPv6Address
from urllib.parse import urlsplit

import httpx
from django.conf import settings

from django_identity.sandbox.server.marking import marked as _

_NAT64 = ipaddress.ip_network("64:ff9b::/96")


class InvalidAddress(ValueError):
    """Not an http or https address with a host. The message, in English, says what is missing."""


class PrivateAddress(ValueError):
    """The host has an IP address that is not public."""


def require_address(url: str) -> str:
    """Return ``url`` if an event can be sent there.

    Raises:
        InvalidAddress: it is no http or https address with a host.
    """
    try:
        parts = urlsplit(url)
        usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
        httpx.URL(url)
    except (ValueError, httpx.InvalidURL):
        usable = False
    if not usable or len(url.split()) != 1:
        raise InvalidAddress(_("A webhook address is like https://shop.example/webhooks."))
    return url


def allowed_address(url: str, *, is_local: bool) -> str:
    """Return ``url`` if it may become a webhook address.

    A name is resolved only when an event is sent.

    Raises:
        InvalidAddress: it is not an http or https address, or it is a private address, which only
            this machine (``is_local``) may choose.
    """
    host = urlsplit(require_address(url)).hostname or ""
    if not is_local and not is_named_by_operator(url) and is_plainly_private(host):
        raise InvalidAddress(_("Only this machine may have events sent to a private address."))
    return url


def is_named_by_operator(url: str) -> bool:
    """Return whether the command line allows the host of ``url``."""
    return urlsplit(url).hostname in settings.SANDBOX_WEBHOOK_HOSTS


def addresses_of(host: str, port: int, *, numeric: bool = False) -> list[str]:
    """Resolve ``host`` and return its IP addresses in the order to try them.

    Args:
        host: a name or an IP address, in any form that the system understands.
        port: the port.
        numeric: do not resolve names.

    Raises:
        OSError: there is no address.
    """
    flags = socket.AI_NUMERICHOST if numeric else 0
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=flags)
    return list(dict.fromkeys(str(address[0]) for *_rest, address in found))


def is_plainly_private(host: str) -> bool:
    """Return whether ``host`` is private even without resolving it."""
    name = host.lower().rstrip(".")
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return not all(map(is_public, addresses_of(name, 0, numeric=True)))
    except (OSError, UnicodeError):
        return False


def is_public(address: str) -> bool:
    """Return whether ``address`` is a public IP address."""
    return all(
        each.is_global and not each.is_multicast and not each.is_reserved
        for each in _meant_by(ipaddress.ip_address(address))
    )


def _meant_by(address: IPv4Address | IPv6Address) -> Iterator[IPv4Address | IPv6Address]:
    """Yield ``address``, or the IPv4 addresses that an IPv6 address embeds."""
    if isinstance(address, IPv4Address):
        yield address
    elif address.ipv4_mapped:
        yield address.ipv4_mapped
    elif address.sixtofour:
        yield address.sixtofour
    elif address.teredo:
        yield from address.teredo
    elif address in _NAT64:
        yield IPv4Address(int(address) & 0xFFFFFFFF)
    else:
        yield address
