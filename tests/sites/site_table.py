"""The sites, a row each."""

from dataclasses import dataclass

import pytest

#: Of the people whom ``serve`` creates.
PASSWORD = "a password for tests alone"
OPERATOR = "olu"
#: One for each step that begins with an account.
LINKING, CONNECTING, MEMBER = MEMBERS = ("kemi", "tunde", "ada")


@dataclass(frozen=True, kw_only=True)
class Site:
    name: str
    #: ``wsgi`` (threads) or ``asgi`` (uvicorn).
    server: str = "wsgi"
    #: Where people find the site, if a proxy stands before it: ``https://host/prefix``.
    public: str = ""
    #: Whether people sign in there with ``name@members.example``.
    names_are_addresses: bool = False
    has_admin: bool = True
    #: What ``check --deploy`` reports of this package.
    reported: tuple[str, ...] = ()


SITES = (
    Site(name="plain"),
    Site(name="replica"),
    Site(name="subpath", public="https://shop.example/portal", server="asgi"),
    Site(name="custom_user", names_are_addresses=True),
    Site(name="beside_allauth"),
    Site(name="beside_others", server="asgi"),
    Site(name="strict", has_admin=False),
)


def rows() -> list[object]:
    return [pytest.param(each, id=each.name) for each in SITES]


def steps_of(name: str) -> list[pytest.MarkDecorator]:
    """The marks of a module with steps that one site takes alone."""
    [site] = [each for each in SITES if each.name == name]
    return [
        pytest.mark.parametrize("site", [site], indirect=True, ids=[name]),
    ]
