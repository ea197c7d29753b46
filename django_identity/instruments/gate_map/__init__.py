"""The map of gates: every address of the site, and what it asks for."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace

from django.conf import settings
from django.conf.urls.i18n import is_language_prefix_patterns_used
from django.http import HttpRequest
from django.urls import URLPattern, URLResolver, get_resolver
from django.utils import translation

from django_identity import conf
from django_identity.gates.gate import Gate
from django_identity.instruments.gate_map.reading import Reading, read
from django_identity.lifecycle.said import scopes
from django_identity.requirements import RequiredScope

# What stands before a view that could not be read.
NOTHING = Reading()
#: The names of includes whose open addresses a list folds into one line.
FOLDED = {
    "admin": "Django's admin",
    "identity": "this package",
    "identity_api": "this package",
}


def never_seen() -> tuple[str, ...]:
    """What every map leaves unseen."""
    return (
        "what a template hides by a tag or a filter",
        "what a view's own code asks: closed_to, claims_of, a gate that it puts around a function",
        "what the site's own code decides, which the list names with ()",
        "a gate in an object that is called, or in a wrapper without functools.wraps",
        "an earlier pattern that answers",
        "what a middleware answers, and gates that another framework keeps",
        f"URLconfs beside {settings.ROOT_URLCONF}",
    )


@dataclass(frozen=True, slots=True)
class Address:
    """An address of the site, the dotted name of its view, and what stands before the view.

    ``error``: the class of the error that kept us from reading the view, or an include.
    ``include``: the name of its include, if it is one of ``FOLDED``.
    """

    url: str
    view: str = ""
    reading: Reading = NOTHING
    error: str = ""
    include: str = ""


def addresses() -> Iterator[Address]:
    """All addresses of the site, in the order of its URLconf."""
    with translation.override(language_of_requests()):
        return iter(list(_addresses(get_resolver(), Address("/"))))


def language_of_requests() -> str:
    """The language of addresses if a request asks for none, as ``LocaleMiddleware`` chooses it.

    ``i18n_patterns`` without a prefix for the site's own language compare with the setting.
    """
    with suppress(Exception):  # the site's own modules; the list says what they raise
        if is_language_prefix_patterns_used(settings.ROOT_URLCONF)[1]:
            return translation.get_language_from_request(HttpRequest())
    return settings.LANGUAGE_CODE


def _addresses(resolver: URLResolver, above: Address) -> Iterator[Address]:
    try:
        entries = resolver.url_patterns
    except Exception as error:  # noqa: BLE001  this imports the site's own modules
        yield replace(above, error=type(error).__name__)
        return
    for entry in entries:
        # As Django joins them for ``ResolverMatch.route``.
        route = str(entry.pattern)
        if above.url != "/":
            route = route.removeprefix("^")
        include = getattr(entry, "app_name", None)
        if include not in FOLDED:
            include = above.include
        below = Address(f"{above.url}{route}", include=include)
        if isinstance(entry, URLResolver):
            yield from _addresses(entry, below)
        else:
            yield _read(entry, below)


def _read(entry: URLPattern, address: Address) -> Address:
    try:
        address = replace(address, view=entry.lookup_str)
        return replace(address, reading=read(entry.callback))
    except Exception as error:  # noqa: BLE001  this makes the site's own views
        return replace(address, error=type(error).__name__)


def guarded() -> list[tuple[Gate, list[str]]]:
    """Each gate of the site once, in the order of the map, with the URLs that it guards."""
    found: dict[str, tuple[Gate, list[str]]] = {}
    for address in addresses():
        for gate in address.reading.gates:
            _gate, urls = found.setdefault(str(gate), (gate, []))
            if address.url not in urls:
                urls.append(address.url)
    return list(found.values())


def unused_scopes() -> Iterator[str]:
    """The scopes of ``LATER_SCOPES`` that are missing in all gates."""
    later_scopes = conf.application().later_scopes
    if not later_scopes:
        return
    required = {asked.scope for _url, asked in _required_scopes()}
    for scope in later_scopes:
        if scope not in required:
            yield scope


def unlisted_scopes() -> Iterator[tuple[str, RequiredScope]]:
    """Address and scope of each gate for a scope outside the site's settings."""
    listed = scopes.of_site()
    for url, required in _required_scopes():
        if required.scope not in listed:
            yield url, required


def _required_scopes() -> Iterator[tuple[str, RequiredScope]]:
    """Address and scope of each gate that asks for one."""
    for address in addresses():
        for gate in address.reading.gates:
            for required in gate.requirements:
                if isinstance(required, RequiredScope):
                    yield address.url, required
