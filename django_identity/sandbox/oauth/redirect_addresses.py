"""Explain a refused redirect address: how it differs from the registered one."""

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _


@dataclass(frozen=True, slots=True)
class Difference:
    """One part in which two addresses differ."""

    part: str | Promise
    requested: str
    registered: str


def differences(requested: str, registered: Sequence[str]) -> tuple[str, list[Difference]]:
    """Return the registered address that is most similar to ``requested``, and the differences."""
    compared = [(each, _compare(requested, each)) for each in registered]
    return min(compared, key=lambda pair: len(pair[1]), default=("", []))


def _compare(requested: str, registered: str) -> list[Difference]:
    """Return the parts in which the addresses differ."""
    pairs = zip(_parts(requested), _parts(registered), strict=True)
    return [
        Difference(part, asked, known) for (part, asked), (_same, known) in pairs if asked != known
    ]


def _parts(address: str) -> list[tuple[str | Promise, str]]:
    """Split ``address`` into its named parts. A text that is not an address is all path."""
    try:
        parts = urlsplit(address)
    except ValueError:
        return list(zip(_NAMES, ("", "", "", address), strict=True))
    host, _colon, port = parts.netloc.rpartition(":")
    if not port.isdigit():
        host, port = parts.netloc, ""
    rest = address[len(parts.scheme) + len("://") + len(parts.netloc) :]
    return list(zip(_NAMES, (parts.scheme, host, port, rest), strict=True))


_NAMES: tuple[str | Promise, ...] = (_("scheme"), _("host"), _("port"), _("path and query"))
