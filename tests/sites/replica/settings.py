"""Reads go to a replica that lags: it stands still between two rounds of upkeep."""

from __future__ import annotations

from tests.sites.plain.settings import *  # noqa: F403
from tests.sites.plain.settings import database

DATABASES = {"default": database("site"), "replica": database("replica")}
DATABASE_ROUTERS = ["tests.sites.replica.router.ReplicaRouter"]
ROOT_URLCONF = "tests.sites.replica.urls"
SITE_READY = "tests.sites.replica.router.copy"
# A session that was just stored would not be found in the replica.
SESSION_ENGINE = "django.contrib.sessions.backends.cache"
