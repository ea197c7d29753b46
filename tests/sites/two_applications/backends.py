"""The sessions of the live application."""

from django_identity.backends import IdentityBackend


class LiveBackend(IdentityBackend):
    application = "live"
