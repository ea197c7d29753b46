"""The sites. ``docs/compatibility.md`` has a row for each."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest


@dataclass(frozen=True, kw_only=True)
class Site:
    """What the walk has to know about a site.

    ``checks``: the ids of this package's messages that ``check --deploy`` reports there.
    """

    name: str
    #: ``wsgi`` (threads), ``asgi`` (uvicorn), or ``processes`` (several, forked).
    server: str = "wsgi"
    #: Where people find the site, if a proxy stands before it: ``https://host/prefix``.
    public: str = ""
    #: Whether people sign in there with ``name@members.example``.
    names_are_addresses: bool = False
    #: Whether ``python manage.py identity_upkeep`` does the work that is due, as from cron.
    cron: bool = False
    checks: frozenset[str] = frozenset()
    environ: dict[str, str] = field(default_factory=dict)

    @property
    def settings(self) -> str:
        return f"tests.sites.{self.name}.settings"


SITES = (
    Site(name="plain"),
    Site(name="two_databases"),
    Site(name="empty_default"),
    Site(name="replica"),
    Site(name="subpath", public="https://shop.example/portal"),
    Site(name="subpath_async", public="https://shop.example/portal", server="asgi"),
    Site(name="custom_user", names_are_addresses=True),
    Site(name="beside_allauth"),
    Site(name="passwords"),
    Site(name="strict"),
    Site(name="strict_django"),
    Site(name="cron", cron=True),
    Site(name="processes", server="processes", checks=frozenset({"django_identity.W027"})),
    Site(name="two_applications", public="https://shop.example"),
    Site(name="asynchronous", server="asgi"),
    Site(name="frontend"),
    Site(name="tokens"),
    Site(name="own_admin"),
    Site(name="arabic"),
)


def site_named(name: str) -> Site:
    """The site for steps of its own."""
    return next(site for site in SITES if site.name == name)


def rows() -> list[object]:
    """The sites as parameters of a fixture. xdist gives one site's steps to one worker."""
    return [
        pytest.param(
            site,
            id=site.name,
            marks=[pytest.mark.xdist_group(site.name), pytest.mark.sites],
        )
        for site in SITES
    ]
