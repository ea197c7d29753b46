"""Three processes, each with a cache of its own: Django's default."""

from __future__ import annotations

from tests.sites.plain.settings import *  # noqa: F403

CACHES = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}}
