"""HTTP in both directions: calls to the service, and webhook deliveries. No database, no rules."""

from django_identity.service.client import ServiceClient

__all__ = ["ServiceClient"]
