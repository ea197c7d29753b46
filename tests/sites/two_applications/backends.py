"""The sessions of the live application."""

from __future__ import annotations

from django_identity.backends import IdentityBackend


class LiveBackend(IdentityBackend):
    application = "live"
