"""The map as a text that git can compare: the same site gives the same lines."""

import difflib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from django_identity.instruments.gate_map import FOLDED, Address, never_seen

#: Of address, methods and demand. They do not depend on the longest: else one new address would
#: change all lines.
COLUMNS = "{:<40}  {:<12}  {:<40}  {}"
TITLES = ("address", "methods", "asks for", "own code decides")
OPEN = "open"


def lines(
    found: Iterable[Address],
    *,
    only_open: bool = False,
    folds: bool = True,
) -> Iterator[str]:
    """The table, the site's own pages first, and what is unseen.

    ``folds``: the open pages of the admin and of this package are one line each.
    """
    yield _line(*TITLES)
    last: list[str] = []
    folded: Counter[str] = Counter()
    for address in found:
        if only_open and not address.reading.open_methods:
            continue
        if not address.include:
            yield from _lines_of(address)
        elif folds and not address.reading.guards and not address.error:
            folded[FOLDED[address.include]] += 1
        else:
            last += _lines_of(address)
    yield from last
    for owner, count in folded.items():
        yield f"{owner}: {count} open address(es); --all lists them"
    for blind_spot in never_seen():
        yield f"not seen: {blind_spot}"


def changed(before: Sequence[str], now: Sequence[str]) -> list[str]:
    """The former lines, with ``-``, and the new ones, with ``+``. A moved line is both."""
    compared = difflib.unified_diff(before, now, n=0, lineterm="")
    return [line for line in compared if not line.startswith("@@")][2:]


def _lines_of(address: Address) -> Iterator[str]:
    """A line for each group of methods before which the same stands."""
    if address.error:
        yield _line(address.url, "", f"not read: {address.error}")
        return
    groups: dict[tuple[str, str], list[str]] = {}
    for method in address.reading.methods or ("",):
        before = address.reading.before(method)
        asks: list[str] = []
        for guard in before.guards:
            requirement = guard.asks or "?"
            asks.append(f"{requirement} ({guard.closed})")
        asked = ", ".join(asks) or OPEN
        methods = groups.setdefault((asked, before.own_code), [])
        methods.append(method.upper() or "any")
    for (asked, own_code), methods in groups.items():
        yield _line(address.url, ",".join(methods), asked, own_code)


def _line(url: str, methods: str, asks: str, own_code: str = "") -> str:
    return COLUMNS.format(url, methods, asks, own_code).rstrip()
