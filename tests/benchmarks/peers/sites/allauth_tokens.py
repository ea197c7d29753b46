"""django-allauth, which also stores the tokens."""

from __future__ import annotations

from tests.benchmarks.peers.sites.allauth import (  # noqa: F401
    APPS,
    BACKENDS,
    BY_FORM,
    MIDDLEWARE,
    START,
)
from tests.benchmarks.peers.sites.allauth import settings as _settings


def settings(service: str) -> dict[str, object]:
    return {**_settings(service), "SOCIALACCOUNT_STORE_TOKENS": True}
