"""Response headers of every page."""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponseBase

from django_identity.sandbox.server import own_process

# No form-action: Chromium applies it to redirects after a form too, and consent ends in one.
CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' https:; "
    "connect-src 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)


class PageHeadersMiddleware:
    """Keeps pages out of caches and frames, and lets nothing but photos load from elsewhere."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        own_process.keep_out()
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Add the headers to an HTML answer, and ``no-store`` to all but cacheable ones."""
        response = self.get_response(request)
        response.headers.setdefault("Cache-Control", "no-store")
        if response.headers.get("Content-Type", "").startswith("text/html"):
            response.headers["Content-Security-Policy"] = CONTENT_SECURITY_POLICY
        return response
