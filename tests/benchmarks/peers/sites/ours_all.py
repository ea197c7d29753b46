"""This package with its default scopes: profile, KYC level and the verified credential."""

from __future__ import annotations

from tests.benchmarks.peers.sites.ours import (  # noqa: F401
    APPS,
    BACKENDS,
    BY_FORM,
    MIDDLEWARE,
    START,
    WEBHOOK,
    WEBHOOK_SECRET,
)
from tests.benchmarks.peers.sites.ours import settings as _settings


def settings(service: str) -> dict[str, object]:
    held = _settings(service)
    held["DJANGO_IDENTITY"]["default"].pop("SCOPES")
    return held
