"""HTTP in both directions: calls to the service, and webhook deliveries. The database and all rules
are elsewhere.
"""

from django_identity.service.client import ServiceClient

__all__ = ["ServiceClient"]
