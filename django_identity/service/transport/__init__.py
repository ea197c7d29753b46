"""One HTTP request, with limits for time and size.

``messages`` a request and its answer · ``http`` the request, by httpx · ``deadline`` the time limit
of a call · ``network`` that limit in every step of httpcore · ``connecting`` name resolution and
connection within it
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django_identity.conf import Application
from django_identity.deferred import Deferred
from django_identity.service.transport.deadline import postpone, seconds_left, within
from django_identity.service.transport.messages import Answer, Call

if TYPE_CHECKING:
    import httpx

    from django_identity.service.transport import http
else:
    http = Deferred("django_identity.service.transport.http")

__all__ = ["Answer", "Call", "exchange", "http_client", "postpone", "seconds_left", "within"]


def exchange(application: Application, call: Call) -> Answer:
    """Send ``call`` once and read its answer. Raises as ``http.exchange`` does."""
    return http.exchange(application, call)


def http_client(application: Application) -> httpx.Client:
    """This process's client for ``application``. Sites may add event hooks to it."""
    return http.http_client(application)
