"""One HTTP request, with limits for time and size.

``http`` the request, by httpx · ``deadline`` the time limit of a call · ``connecting`` name
resolution and connection within that limit
"""

from django_identity.service.transport.deadline import postpone, seconds_left, within
from django_identity.service.transport.http import Answer, Call, exchange, http_client

__all__ = ["Answer", "Call", "exchange", "http_client", "postpone", "seconds_left", "within"]
