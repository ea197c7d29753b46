"""Doors: the gated addresses of the site, each with a path and a method at which it is tried."""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import chain
from typing import Any, NamedTuple

from django.conf import settings
from django.shortcuts import resolve_url
from django.test import Client
from django.urls import Resolver404, resolve

from django_identity.gates import Gate
from django_identity.gates.closed import ANSWERS
from django_identity.instruments.gate_map import Address
from django_identity.instruments.gate_map.reading import Guard, Reading
from django_identity.requirements import RequiredClaim, Requirement, is_level
from django_identity.testing.drill.report import Report
from django_identity.web.pages import address_of

COUNTRY = "country_resident"
OPEN = "open"
CLOSED = "closed"
# Also those of a regular expression, for which nobody can tell an address.
PARAMETERS = re.compile(r"[<(\[\\*?{|]")
#: What regular expressions and routers of Django REST framework have in an address -> in a path.
SIGNS = {
    "/^": "/",
    r"\.(?P<format>[a-z0-9]+)/?": ".json",
    "<drf_format_suffix:format>": ".json",
}

# A browser gets the site's page for an error, and not the error.
new_browser = partial(Client, raise_request_exception=False)


class Door(NamedTuple):
    path: str
    method: str
    before: Reading

    @property
    def requirements(self) -> list[Requirement]:
        gates = self.before.gates
        return [required for gate in gates for required in gate.requirements]

    @property
    def claims(self) -> list[RequiredClaim]:
        return [each for each in self.requirements if isinstance(each, RequiredClaim)]

    @property
    def countries(self) -> list[str]:
        """Those of which it asks for one."""
        lists = [each.values for each in self.claims if each.claim_type == COUNTRY]
        return list(chain(*lists))

    @property
    def has_own_page(self) -> bool:
        """Whether a closed gate may show what looks like the page."""
        return any(guard.closed not in ANSWERS for guard in self.before.guards)

    def open(self, browser: Client, **headers: str) -> Any:
        """The response. What takes only a POST gets one."""
        ask = getattr(browser, self.method)
        response = ask(self.path, headers=headers, secure=True)
        if response.status_code == 405:
            return browser.post(self.path, secure=True)
        return response


def path_of(url: str) -> str:
    """The path of an address of the map, or an empty text if that takes an example."""
    path = url.removesuffix("$")
    for sign, instead in SIGNS.items():
        path = path.replace(sign, instead)
    if PARAMETERS.search(path):
        return ""
    return path


def doors_of(
    found: Iterable[Address],
    report: Report,
    *,
    examples: Collection[str],
) -> Iterator[Door]:
    """The doors that can be tried. ``report`` gets the others. Raises ``NotARequirement``."""
    routes: dict[str, str] = {}
    for example in examples:
        path, _, asked = example.partition("=")
        if asked:
            report.untried[path] = f"nobody here has {asked}"
            yield Door(path, "get", _told(asked))
        else:
            report.untried[path] = "no gated address has it"
            routes[path] = _route_of(path)
    for address in found:
        paths = [path for path, route in routes.items() if route == address.url]
        paths += filter(None, [path_of(address.url)])
        why = _why_untried(address, paths)
        if why:
            report.untried[address.url] = why
        else:
            for path in dict.fromkeys(paths):
                yield from _doors_at(path, address, report)


def _told(asked: str) -> Reading:
    """What an operator says of a view whose own code asks."""
    gate = Gate(kyc_level=asked) if is_level(asked) else Gate(asked)
    return Reading((Guard(asked, ANSWERS[0], gates=(gate,)),))


def _route_of(path: str) -> str:
    """The address of the map that answers the path, or an empty text."""
    with suppress(Resolver404):
        return f"/{resolve(path).route}"
    return ""


def _why_untried(address: Address, paths: Sequence[str]) -> str:
    """Why the address has no door, or an empty text. Without guards it needs none."""
    if address.error:
        return f"its view cannot be read: {address.error}"
    reading = address.reading
    if not reading.gates:
        return reading.own_code and f"the site's own code decides: {reading.own_code}"
    if not paths:
        return "no --address"
    answers = _route_of(paths[0])
    if answers != address.url:
        return f"{answers or 'nothing'} answers"
    return ""


def _doors_at(path: str, address: Address, report: Report) -> Iterator[Door]:
    """One for each method that has a gate."""
    reading = address.reading
    for method in {guard.method or "get" for guard in reading.guards if guard.gates}:
        before = reading.before(method)
        asked = ", ".join(guard.asks for guard in before.guards)
        # Values of a claim stand without spaces.
        if "~" in asked or " | " in asked:
            report.untried[path] = f"somebody else's permissions open it, too: {asked}"
        else:
            report.untried[path] = f"nobody here has {asked}"
            yield Door(path, method, before)


def outcome_of(response: Any, path: str) -> str:
    """``open``, ``closed``, or the status of what says neither."""
    status = response.status_code
    ways_in = (resolve_url(settings.LOGIN_URL), address_of("login"))
    leads_to = response.headers.get("Location", "")
    if status in (401, 403) or leads_to.partition("?")[0] in ways_in:
        return CLOSED
    # The page itself has the address with a slash.
    is_elsewhere = leads_to == f"{path}/"
    if status == 405 or (status < 400 and not is_elsewhere):
        return OPEN
    return str(status)
