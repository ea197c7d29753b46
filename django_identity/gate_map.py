"""The map of gates: every URL of the site, what it asks for, and what has become more open.

It does not see what a template hides by a tag or a filter, nor a view in a wrapper that hides it
(use ``functools.wraps``).
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from django.db.models import QuerySet
from django.urls import URLPattern, URLResolver, get_resolver
from django.urls.resolvers import LocalePrefixPattern

from django_identity import conf
from django_identity.conf import Application
from django_identity.gates import ATTRIBUTE, Gate, GateMixin, missing_to
from django_identity.lifecycle.standing import standing_with
from django_identity.models import LinkedIdentity

# Django REST framework's operators of permissions by their names: a site may run without it.
SIGNS = {"AND": " & ", "OR": " | "}


@dataclass(frozen=True, slots=True)
class Requirement:
    """One thing that an URL asks for, as text, and the ``gates`` in it.

    ``closed``: what a visitor gets who does not have it, as ``on_closed`` of a gate.
    """

    text: str
    application: str
    closed: str
    gates: tuple[Gate, ...] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Entrance:
    """An URL, the dotted name of its view, and all that it asks for.

    ``error``: the class of the error that kept us from reading it, or the URLs below it.
    """

    url: str
    view: str = ""
    requirements: tuple[Requirement, ...] = ()
    error: str = ""

    def as_json(self) -> dict[str, Any]:
        """For a file, with which ``opened`` compares a later map."""
        asked = [
            {"requires": each.text, "application": each.application, "closed": each.closed}
            for each in self.requirements
        ]
        return {"url": self.url, "view": self.view, "gates": asked, "error": self.error}


def entrances(resolver: URLResolver | None = None, prefix: str = "/") -> Iterator[Entrance]:
    """All URLs of the site, or those of ``resolver``, in the order of its URLconf."""
    try:
        patterns = (resolver or get_resolver()).url_patterns
    except Exception as error:  # noqa: BLE001  this imports the site's own modules
        yield Entrance(prefix, error=type(error).__name__)
        return
    for each in patterns:
        has_language = isinstance(each.pattern, LocalePrefixPattern)
        url = prefix + ("<language>/" if has_language else str(each.pattern))
        if isinstance(each, URLResolver):
            yield from entrances(each, url)
        else:
            yield _entrance(each, url)


def gates() -> list[Gate]:
    """Each gate of the site once, in the order of the map."""
    asked = [requirement for entrance in entrances() for requirement in entrance.requirements]
    found = {(str(gate), gate.application): gate for each in asked for gate in each.gates}
    return list(found.values())


def passed_by(
    identities: QuerySet[LinkedIdentity], *, application: Application
) -> Iterator[tuple[Gate, int]]:
    """Each gate of the application, and how many of these granted identities pass it now.

    A gate that wants a recent sign-in depends on the session, and is left out.
    """
    rows = identities.prefetch_related("claims")
    standings = [standing_with(row, row.claims.all()) for row in rows]
    for gate in gates():
        if gate.application == application.alias and not gate.minutes:
            yield gate, sum(missing_to(gate, standing)[2] is None for standing in standings)


def unused_scopes() -> list[tuple[str, str]]:
    """Application and scope of ``LATER_SCOPES`` for which no gate asks."""
    asked = {(gate.application, gate.scope) for gate in gates()}
    later = [(site.alias, scope) for site in conf.applications() for scope in site.later_scopes]
    return [each for each in later if each not in asked]


def opened(before: Iterable[Mapping[str, Any]], now: Iterable[Entrance]) -> Iterator[Entrance]:
    """The URLs of ``now`` that ask for less than in ``before``, which ``as_json`` has written.

    A new URL is compared with what its view asked for elsewhere. Of several views at one URL only
    the first counts, which Django calls.
    """
    by_url: dict[str, set[tuple[str, str]]] = {}
    by_view: dict[str, set[tuple[str, str]]] = {}
    for each in before:
        asked = {(gate["requires"], gate["application"]) for gate in each["gates"]}
        by_url.setdefault(each["url"], asked)
        by_view[each["view"]] = by_view.get(each["view"], asked) & asked
    first: dict[str, Entrance] = {}
    for entrance in now:
        first.setdefault(entrance.url, entrance)
    for entrance in first.values():
        asked = by_url.get(entrance.url, by_view.get(entrance.view, set()))
        kept = {(each.text, each.application) for each in entrance.requirements}
        if asked - kept and not entrance.error:
            yield entrance


def _entrance(pattern: URLPattern, url: str) -> Entrance:
    try:
        return Entrance(url, pattern.lookup_str, tuple(_requirements(pattern.callback)))
    except Exception as error:  # noqa: BLE001  this makes the site's own views
        return Entrance(url, pattern.lookup_str, error=type(error).__name__)


def _requirements(view: Any) -> Iterator[Requirement]:
    """What decorators, mixins and permissions of ``view`` ask for, the outermost first."""
    view = getattr(view, "func", view)
    attributes = getattr(view, "__dict__", {}).items()
    asked = [gate for name, gate in attributes if name.startswith(ATTRIBUTE)][::-1]
    if issubclass(getattr(view, "view_class", object), GateMixin):
        asked += view.view_class(**view.view_initkwargs).gates()
    for gate in asked:
        name = getattr(gate.on_closed, "__qualname__", gate.on_closed)
        yield Requirement(str(gate), gate.application, str(name), (gate,))
    given = getattr(view, "initkwargs", {})
    permissions = getattr(getattr(view, "cls", None), "permission_classes", ())
    for permission in given.get("permission_classes", permissions):
        text, found = _read(permission)
        if found:
            yield Requirement(text, found[0].application, "forbid", found)


def _read(permission: Any) -> tuple[str, tuple[Gate, ...]]:
    """The permission, ``(age_over_18 & ~(level_2 | IsAdminUser))``, and the gates in it."""
    if not hasattr(permission, "op1_class"):
        gate = getattr(permission, "gate", None)
        return (str(gate), (gate,)) if isinstance(gate, Gate) else (permission.__name__, ())
    text, found = _read(permission.op1_class)
    if not hasattr(permission, "op2_class"):
        return f"~{text}", found
    second, more = _read(permission.op2_class)
    sign = SIGNS[permission.operator_class.__name__]
    return f"({text}{sign}{second})", found + more
