"""``DATABASES["default"]`` is empty, as Django allows: a router names the database."""

from __future__ import annotations

from tests.sites.plain.settings import *  # noqa: F403
from tests.sites.plain.settings import database

DATABASES = {"default": {}, "people": {**database("people"), "ATOMIC_REQUESTS": True}}
DATABASE_ROUTERS = ["tests.sites.empty_default.router.OneRouter"]
