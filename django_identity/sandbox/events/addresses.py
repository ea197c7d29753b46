"""Where events may go: to public addresses, unless this machine or its operator says otherwise."""

import ipaddress
import socket
from collections.abc import Iterator
from ipaddress import IPv4Address, IPv6Address
from urllib.parse import urlsplit

import httpx
from django.conf import settings

_NAT64 = ipaddress.ip_network("64:ff9b::/96")


class InvalidAddress(ValueError):
    """No http or https address with a host."""


class PrivateAddress(ValueError):
    """The host stands for an address that is not public."""


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
        raise InvalidAddress("A webhook address is like https://shop.example/webhooks.")
    return url


def allowed_address(url: str, *, is_local: bool) -> str:
    """Return ``url`` if it may become a webhook address.

    Names that stand for a private address are found out when an event leaves.

    Raises:
        InvalidAddress: it is no http or https address, or a private one that this machine
            (``is_local``) alone may choose.
    """
    host = urlsplit(require_address(url)).hostname or ""
    if not is_local and not is_named_by_operator(url) and is_plainly_private(host):
        raise InvalidAddress("Only this machine may have events sent to a private address.")
    return url


def is_named_by_operator(url: str) -> bool:
    """Return whether the command line allows the host of ``url`` to everybody."""
    return urlsplit(url).hostname in settings.SANDBOX_WEBHOOK_HOSTS


def addresses_of(host: str, port: int, *, numeric: bool = False) -> list[str]:
    """Return the addresses that ``host`` stands for now, in the order to try them.

    Args:
        host: a name or an address, in any form that the system understands.
        port: where to.
        numeric: ask no name server, so that a name stands for nothing.

    Raises:
        OSError: there are none.
    """
    flags = socket.AI_NUMERICHOST if numeric else 0
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=flags)
    return list(dict.fromkeys(str(address[0]) for *_rest, address in found))


def is_plainly_private(host: str) -> bool:
    """Return whether ``host`` is private whatever the name servers say."""
    name = host.lower().rstrip(".")
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return not all(map(is_public, addresses_of(name, 0, numeric=True)))
    except (OSError, UnicodeError):
        return False


def is_public(address: str) -> bool:
    """Return whether everybody reaches the same machine at ``address``."""
    return all(
        each.is_global and not each.is_multicast and not each.is_reserved
        for each in _meant_by(ipaddress.ip_address(address))
    )


def _meant_by(address: IPv4Address | IPv6Address) -> Iterator[IPv4Address | IPv6Address]:
    """Yield ``address`` or, of an IPv6 address that stands for IPv4 ones, those."""
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
