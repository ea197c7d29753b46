"""What has become more open since a map was stored, what stricter, and what cannot be compared."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from django_identity.gates.demands import (
    Demand,
    as_json,
    describe,
    every,
    from_json,
    implies,
    some,
)
from django_identity.gates.reading import Guard, Reading
from django_identity.gates.site_map import Address, never_seen
from django_identity.strict_json import JSONObject

#: The version of the stored file. A file of another one cannot be compared.
VERSION = 1


class NotAMap(ValueError):
    """This version has not written the file, or not for this site."""


class Verdict(StrEnum):
    """What became of an address."""

    OPENED = "opened"
    #: It could not be read now, or when the map was stored.
    NOT_READ = "not read"
    STRICTER = "stricter"


@dataclass(frozen=True, slots=True)
class Change:
    """An address of the present map that has changed, and in what."""

    verdict: Verdict
    address: Address
    detail: str


def changes(before: Sequence[Address], now: Sequence[Address]) -> Iterator[Change]:
    """What has changed between a stored map and the present one.

    An address is compared with itself. A view that is new at its address is compared with the least
    that it asked for elsewhere, too. A new address of a new view is no change.
    """
    former = _Map(before)
    present = _Map(now)
    for address in present.by_url.values():
        change = _change(address, present, former)
        if change is not None:
            yield change


class _Map:
    """The addresses of a map, by URL and by view."""

    def __init__(self, addresses: Iterable[Address]) -> None:
        # Of several views at one address Django calls the first.
        self.by_url: dict[str, Address] = {}
        self.by_view: dict[str, list[Address]] = {}
        self.unread_includes: list[str] = []
        for address in addresses:
            self.by_url.setdefault(address.url, address)
            self.by_view.setdefault(address.view, []).append(address)
            if address.error and not address.view:
                self.unread_includes.append(address.url)

    def formers(self, address: Address) -> Iterator[list[Address]]:
        """The same address, and all addresses of its view if that is new at the address."""
        same = self.by_url.get(address.url)
        if same is not None:
            yield [same]
        is_new_there = same is None or same.view != address.view
        if is_new_there and address.view in self.by_view:
            yield self.by_view[address.view]

    def is_below_unread(self, address: Address) -> bool:
        """Whether the include above the address could not be read."""
        return address.url.startswith(tuple(self.unread_includes))

    def answering(self, address: Address) -> Address:
        """The one whose view answers: an earlier address, or ``address`` itself."""
        return self.by_url.get(address.answered_by, address)


class _Pair(NamedTuple):
    """Who answers at an address now, and those of whom one answered before."""

    now: Address
    before: list[Address]


def _change(address: Address, present: _Map, former: _Map) -> Change | None:
    if address.error or former.is_below_unread(address):
        return Change(Verdict.NOT_READ, address, address.error or "not read before")
    pairs = list(_pairs(address, present, former))
    for pair in pairs:
        for compared in (pair.now, *pair.before):
            if compared.error:
                detail = f"{compared.url}: {compared.error}"
                return Change(Verdict.NOT_READ, address, detail)

    stricter = None
    for pair in pairs:
        for method in pair.now.reading.methods or ("",):
            now = pair.now.reading.demand(method)
            before = some(_demand(one.reading, method) for one in pair.before)
            detail = f"{method.upper()} {describe(before)} -> {describe(now)}".strip()
            if not implies(now, before):
                return Change(Verdict.OPENED, address, detail)
            if not implies(before, now):
                stricter = Change(Verdict.STRICTER, address, detail)
    return stricter


def _pairs(address: Address, present: _Map, former: _Map) -> Iterator[_Pair]:
    """The views themselves, and those that answer in their place."""
    for formers in former.formers(address):
        yield _Pair(address, formers)
        answering = [former.answering(one) for one in formers]
        yield _Pair(present.answering(address), answering)


def _demand(reading: Reading, method: str) -> Demand:
    """What a view asked for, which a request of ``method`` must at least meet now.

    If the view had no handler for the method, the least of what its handlers asked for counts. If
    the view has become a function, which answers every method, all of it counts.
    """
    if not reading.methods or method in reading.methods:
        return reading.demand(method)
    demands = map(reading.demand, reading.methods)
    if method:
        return some(demands)
    return every(demands)


# The stored file


def map_as_json(addresses: Iterable[Address]) -> JSONObject:
    """For a file, from which ``map_from_json`` reads the addresses again."""
    return {
        "version": VERSION,
        "urlconf": settings.ROOT_URLCONF,
        "not_seen": list(never_seen()),
        "addresses": [_address_as_json(address) for address in addresses],
    }


def map_from_json(stored: Any) -> list[Address]:
    """The addresses that ``map_as_json`` has written. Raises ``NotAMap``."""
    try:
        version = stored["version"]
        if version != VERSION:
            raise NotAMap(f"it has version {version}, and this is version {VERSION}")
        urlconf = stored["urlconf"]
        if urlconf != settings.ROOT_URLCONF:
            raise NotAMap(f"it is of another site: {urlconf}")
        return [_address_from_json(entry) for entry in stored["addresses"]]
    except (LookupError, TypeError, AttributeError, ImproperlyConfigured) as error:
        name = type(error).__name__
        raise NotAMap(f"it is not what --json wrote ({name})") from error


def _address_as_json(address: Address) -> JSONObject:
    return {
        "url": address.url,
        "view": address.view,
        "guards": [_guard_as_json(guard) for guard in address.reading.guards],
        "methods": address.reading.methods,
        "error": address.error,
        "answered_by": address.answered_by,
    }


def _guard_as_json(guard: Guard) -> JSONObject:
    return {
        "demand": as_json(guard.demand),
        "closed": guard.closed,
        "method": guard.method,
    }


def _address_from_json(entry: JSONObject) -> Address:
    guards = map(_guard_from_json, entry["guards"])
    return Address(
        entry["url"],
        view=entry["view"],
        reading=Reading(tuple(guards), tuple(entry["methods"])),
        error=entry["error"],
        answered_by=entry["answered_by"],
    )


def _guard_from_json(entry: JSONObject) -> Guard:
    return Guard(
        demand=from_json(entry["demand"]),
        closed=entry["closed"],
        method=entry["method"],
    )
