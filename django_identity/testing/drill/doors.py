"""Doors: the gated addresses of the site, each with a path and a method at which it is tried."""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.shortcuts import resolve_url
from django.test import Client
from django.urls import resolve

from django_identity import conf
from django_identity.gates.closed import ANSWERS
from django_identity.gates.demands import describe
from django_identity.gates.site_map import Address
from django_identity.requirements import Requirement
from django_identity.testing.drill.report import Report
from django_identity.views.pages import address_of

OPEN = "open"
CLOSED = "closed"
# A regex, too, for which nobody can tell an address.
HAS_PARAMETERS = re.compile(r"[<(^]")


@dataclass(frozen=True, slots=True)
class Door:
    """``asked``: all that its gates ask for. ``own_code``: what may answer in their place.

    ``has_own_page``: what answers for a closed gate may look like an open one.
    """

    path: str
    method: str
    asked: frozenset[Requirement]
    own_code: str
    has_own_page: bool

    def open(self, browser: Client) -> Any:
        """The response. What takes only a POST gets one."""
        response = getattr(browser, self.method)(self.path, secure=True)
        if response.status_code == 405:
            return browser.post(self.path, secure=True)
        return response


def doors_of(
    found: Sequence[Address], report: Report, *, examples: Collection[str]
) -> Iterator[Door]:
    """The doors that can be tried. ``report`` gets the others. Raises ``Resolver404``."""
    for address in found:
        if address.error:
            report.untried[address.url] = address.error
        if not address.gates:
            continue
        paths = [path for path in examples if f"/{resolve(path).route}" == address.url]
        if not HAS_PARAMETERS.search(address.url):
            paths.append(address.url)
        if not paths or address.answered_by:
            report.untried[address.url] = f"answered by {address.answered_by or 'no --address'}"
            continue
        for method in {guard.method or "get" for guard in address.reading.guards}:
            text = describe(address.reading.demand(method))
            if "~" in text or ("|" in text and "()" not in text):
                report.untried[f"{method} {address.url}"] = f"other rules open it, too: {text}"
                continue
            for path in paths:
                yield _door(address, path, method, own_code=text)


def _door(address: Address, path: str, method: str, *, own_code: str) -> Door:
    guards = [each for each in address.reading.guards if each.method in ("", method)]
    gates = [gate for guard in guards for gate in guard.gates]
    return Door(
        path,
        method,
        frozenset(each for gate in gates for each in gate.requirements),
        own_code=", ".join(re.findall(r"[\w.]+\(\)", own_code)),
        has_own_page=any(guard.closed not in ANSWERS for guard in guards),
    )


def outcome_of(response: Any) -> str:
    """``open``, ``closed``, or the status of what says neither."""
    status = response.status_code
    pages = [address_of("login", each) for each in conf.applications()]
    ways_in = (*pages, resolve_url(settings.LOGIN_URL))
    if status in (401, 403) or response.headers.get("Location", "").startswith(ways_in):
        return CLOSED
    return OPEN if status < 400 or status == 405 else str(status)
