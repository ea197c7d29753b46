"""What stands around every request: the log, faults, and the headers of pages."""

from collections.abc import Callable
from datetime import UTC, datetime

from django.http import HttpRequest, HttpResponseBase
from django.urls import Resolver404, resolve

from django_identity.sandbox import apps, envelope, faults, request_log

# What the console shows is not disturbed by what it orders.
_OWN_PREFIXES = ("/sandbox/", "/console/", "/portal/", "/static/", "/favicon.ico")
# No form-action: Chromium applies it to redirects after a form too, and consent ends in one.
CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' https:; "
    "connect-src 'self'; base-uri 'none'; frame-ancestors 'none'"
)


class SandboxMiddleware:
    """Logs what the service is asked, applies ordered faults, and adds the headers of pages."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        apps.keep_out()
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Answer the request."""
        path = request.path_info
        started = datetime.now(UTC)
        if path == "/" or path.startswith(_OWN_PREFIXES):
            return _with_headers(self._answer(request))
        endpoint = _endpoint_name(path)
        fault = faults.take(request, endpoint)
        if fault is None:
            response = self._answer(request)
        else:
            response = faults.misbehave(fault, request, self._answer)
            response.fault = fault.kind  # type: ignore[attr-defined]  # read by the request log
        request_log.add(request, response, endpoint, started)
        return _with_headers(response)

    def _answer(self, request: HttpRequest) -> HttpResponseBase:
        """Answer, in the API with the envelope whatever fails."""
        response = self.get_response(request)
        if response.status_code == 500 and request.path_info.startswith("/api/"):
            return envelope.error(500, "INTERNAL_ERROR", "The sandbox has failed.")
        return response


def _with_headers(response: HttpResponseBase) -> HttpResponseBase:
    """Keep answers out of caches, and pages out of frames; only photos load from elsewhere."""
    response.headers.setdefault("Cache-Control", "no-store")
    if response.headers.get("Content-Type", "").startswith("text/html"):
        response.headers["Content-Security-Policy"] = CONTENT_SECURITY_POLICY
    return response


def _endpoint_name(path: str) -> str:
    """Return the URL name of the requested address, or an empty text."""
    try:
        return resolve(path).url_name or ""
    except Resolver404:
        return ""
