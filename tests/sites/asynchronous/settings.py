"""ASGI under uvicorn: every page is an async view."""

from __future__ import annotations

from tests.sites.plain.settings import *  # noqa: F403

ROOT_URLCONF = "tests.sites.asynchronous.urls"
