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

from django_identity.gates import Gate, site_map
from django_identity.gates.closed import ANSWERS
from django_identity.gates.demands import describe
from django_identity.gates.reading import Guard
from django_identity.gates.site_map import Address
from django_identity.requirements import Requirement
from django_identity.testing.drill.report import Report
from django_identity.views.pages import address_of

UNSEEN = "nobody can tell whether an earlier pattern answers: try a path with --address"
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
        with suppress(Resolver404):
            routes[path] = f"/{resolve(path).route}"
    # Those without a gate may be too many to compare, and are no doors.
    gated = site_map.with_answers([address for address in found if address.gates])
    others = [address for address in found if not address.gates]
    for address in (*gated, *others):
        paths = [path for path, route in routes.items() if route == address.url]
        # An example leads to the address, whatever else answers there.
        is_known = address.answered_by != site_map.UNKNOWN
        if is_known and not PARAMETERS.search(address.url):
            paths.append(address.url)
        why = _why_untried(address, paths)
        if why:
            report.untried[address.url] = why
        else:
            for path in dict.fromkeys(paths):
                yield from _doors_at(path, address, report)


def _why_untried(address: Address, paths: Collection[str]) -> str:
    """Why the address has no door, or an empty text. Without guards it needs none."""
    if address.error:
        return f"its view cannot be read: {address.error}"
    if address.reading.guards and not address.gates:
        asked = describe(address.reading.demand(""))
        return f"the site's own code decides: {asked}"
    if address.answered_by not in ("", site_map.UNKNOWN):
        return f"{address.answered_by} answers"
    if paths or not address.gates:
        return ""
    if address.answered_by:
        return UNSEEN
    return "no --address"


def _doors_at(path: str, address: Address, report: Report) -> Iterator[Door]:
    """One for each method that has a gate."""
    guards = address.reading.guards
    for method in {guard.method or "get" for guard in guards if guard.gates}:
        demand = describe(address.reading.demand(method))
        own_code = ", ".join(re.findall(r"[\w.]+\(\)", demand))
        if "~" in demand or ("|" in demand and not own_code):
            report.untried[path] = f"somebody else's permissions open it, too: {demand}"
        else:
            yield Door(
                path,
                method,
                guards=[guard for guard in guards if guard.method in ("", method)],
                own_code=own_code,
            )


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
