"""People are in a database of their own, read from a replica that stands still between upkeeps."""

from tests.sites.plain.settings import *  # noqa: F403
from tests.sites.plain.settings import database

DATABASES = {
    "default": database("site"), "people": database("people"), "replica": database("replica"),
}  # fmt: skip
DATABASE_ROUTERS = ["tests.sites.replica.router.PeopleRouter"]
ROOT_URLCONF = "tests.sites.replica.urls"
SITE_READY = "tests.sites.replica.router.copy"
