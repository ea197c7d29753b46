"""Doors: the gated addresses of the site, each with a path and a method at which it is tried."""

import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from django.conf import settings
from django.shortcuts import resolve_url
from django.test import Client
from django.urls import Resolver404, resolve

from django_identity.gates import Gate
from django_identity.gates.closed import ANSWERS
from django_identity.instruments.drill.report import Report
from django_identity.instruments.gate_map import Address
from django_identity.instruments.gate_map.reading import Guard
from django_identity.requirements import Requirement
from django_identity.web.pages import address_of

OPEN = "open"
CLOSED = "closed"
# Those of a regex, too, for which nobody can tell an address.
PARAMETERS = re.compile(r"[<(^]")

# A browser gets the site's page for an error, and not the error.
new_browser = partial(Client, raise_request_exception=False)


@dataclass(frozen=True, slots=True)
class Door:
    """``own_code``: the site's own, which may answer before a gate or in its place."""

    path: str
    method: str
    guards: Sequence[Guard]
    own_code: str

    @property
    def gates(self) -> list[Gate]:
        return [gate for guard in self.guards for gate in guard.gates]

    @property
    def requirements(self) -> list[Requirement]:
        return [required for gate in self.gates for required in gate.requirements]

    @property
    def has_own_page(self) -> bool:
        """Whether a closed gate may show what looks like the page."""
        return any(guard.closed not in ANSWERS for guard in self.guards)

    def open(self, browser: Client) -> Any:
        """The response. What takes only a POST gets one."""
        response = getattr(browser, self.method)(self.path, secure=True)
        if response.status_code == 405:
            return browser.post(self.path, secure=True)
        return response


def doors_of(
    found: Sequence[Address], report: Report, *, examples: Collection[str]
) -> Iterator[Door]:
    """The doors that can be tried. ``report`` gets the others."""
    routes: dict[str, str] = {}
    for path in examples:
        report.untried[path] = "no gated address has it"
        routes[path] = _route_of(path)
    for address in found:
        paths = [path for path, route in routes.items() if route == address.url]
        if not PARAMETERS.search(address.url):
            paths.append(address.url)
        why = _why_untried(address, paths)
        if why:
            report.untried[address.url] = why
        else:
            for path in dict.fromkeys(paths):
                yield from _doors_at(path, address, report)


def _route_of(path: str) -> str:
    """The address of the map that answers the path, or an empty text."""
    with suppress(Resolver404):
        return f"/{resolve(path).route}"
    return ""


def _why_untried(address: Address, paths: Collection[str]) -> str:
    """Why the address has no door, or an empty text. Without guards it needs none."""
    if address.error:
        return f"its view cannot be read: {address.error}"
    if address.reading.guards and not address.gates:
        codes = [code for guard in address.reading.guards for code in guard.own_code]
        return f"the site's own code decides: {', '.join(codes)}"
    if not address.gates:
        return ""
    if not paths:
        return "no --address"
    answers = _route_of(address.url)
    if paths == [address.url] and answers != address.url:
        return f"{answers or 'nothing'} answers"
    return ""


def _doors_at(path: str, address: Address, report: Report) -> Iterator[Door]:
    """One for each method that has a gate."""
    guards = address.reading.guards
    for method in {guard.method or "get" for guard in guards if guard.gates}:
        before = address.reading.before(method)
        asked = ", ".join(guard.asks for guard in before)
        if "~" in asked or " | " in asked:
            report.untried[path] = f"somebody else's permissions open it, too: {asked}"
        else:
            codes = [code for guard in before for code in guard.own_code]
            yield Door(path, method, guards=before, own_code=", ".join(codes))


def outcome_of(response: Any) -> str:
    """``open``, ``closed``, or the status of what says neither."""
    status = response.status_code
    ways_in = [resolve_url(settings.LOGIN_URL)]
    ways_in.append(address_of("login"))
    leads_to = response.headers.get("Location", "")
    if status in (401, 403) or leads_to.startswith(tuple(ways_in)):
        return CLOSED
    if status < 400 or status == 405:
        return OPEN
    return str(status)
