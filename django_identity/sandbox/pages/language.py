"""The language of the pages; machines are answered in English."""

from django.conf import settings
from django.http import HttpRequest, HttpResponseBase
from django.middleware.locale import LocaleMiddleware
from django.utils import translation

_FOR_MACHINES = ("/api/", "/oauth2/token", "/.well-known/", "/sandbox/", "/static/")


class PageLanguageMiddleware(LocaleMiddleware):
    """Speaks the language that the person chose, or that their browser prefers, on pages only."""

    def process_request(self, request: HttpRequest) -> None:
        """Choose the language of a page. The thread may have spoken another one before."""
        if request.path_info.startswith(_FOR_MACHINES):
            translation.activate(settings.LANGUAGE_CODE)
        else:
            super().process_request(request)

    def process_response(
        self, request: HttpRequest, response: HttpResponseBase
    ) -> HttpResponseBase:
        """Name the language of a page in its headers."""
        if request.path_info.startswith(_FOR_MACHINES):
            return response
        return super().process_response(request, response)
