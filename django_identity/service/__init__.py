"""The wire: HTTP and its bytes, both ways. No database, no rules."""

from django_identity.service.client import ServiceClient

__all__ = ["ServiceClient"]
