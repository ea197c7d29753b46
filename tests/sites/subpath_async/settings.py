"""The same under ASGI."""

from __future__ import annotations

from tests.sites.subpath.settings import *  # noqa: F403

ROOT_URLCONF = "tests.sites.asynchronous.urls"
