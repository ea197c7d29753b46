"""People and their identities are in a database of their own; the router says so."""

from __future__ import annotations

from tests.sites.plain.settings import *  # noqa: F403
from tests.sites.plain.settings import database

DATABASES = {"default": database("site"), "people": database("people")}
DATABASE_ROUTERS = ["tests.sites.two_databases.router.PeopleRouter"]
