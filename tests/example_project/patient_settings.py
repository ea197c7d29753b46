"""The example project without a limit of tries, and with an application whose service is away."""

from __future__ import annotations

from example_project.settings import *  # noqa: F403
from example_project.settings import DJANGO_IDENTITY

# A cache that keeps nothing counts no tries.
CACHES = {"default": {"BACKEND": "django.core.cache.backends.dummy.DummyCache"}}
NOWHERE = {"BASE_URL": "http://127.0.0.1:9/api/v1", "AUTH_URL": "http://127.0.0.1:9"}
DJANGO_IDENTITY = {**DJANGO_IDENTITY, "away": {**DJANGO_IDENTITY["default"], **NOWHERE}}
