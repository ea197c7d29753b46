"""Error pages: what is wrong in words, for a developer who looks at a wrong address."""

from collections.abc import Callable, Iterator
from difflib import get_close_matches

from django.http import HttpRequest, HttpResponse, HttpResponseBase, HttpResponseNotAllowed
from django.shortcuts import render
from django.template.loader import render_to_string
from django.urls import URLPattern, URLResolver, get_resolver
from django.utils.translation import gettext as _

from django_identity.sandbox.server import envelope, own_process

_API = "/api/"


class WrongMethodMiddleware:
    """Gives a page to an empty 405, which ``require_http_methods`` answers."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        own_process.keep_out()
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Answer the request; say in words that the method is the wrong one."""
        response = self.get_response(request)
        if not isinstance(response, HttpResponseNotAllowed) or response.content:
            return response
        page = _page(
            request,
            405,
            _("This address cannot be used like that"),
            _("%(path)s does not take %(method)s, only %(allowed)s.")
            % {"path": request.path_info, "method": request.method, "allowed": response["Allow"]},
        )
        page["Allow"] = response["Allow"]
        return page


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Say that there is no such page, and name those that look like it."""
    near = get_close_matches(request.path_info, set(_addresses()), n=3)
    lead = _("The sandbox has nothing at %(path)s.") % {"path": request.path_info}
    return _page(request, 404, _("There is no such page"), lead, near=near)


def unproven_form(request: HttpRequest, reason: str = "") -> HttpResponse:
    """Say that a form came without the token of its page."""
    lead = _("The form was not sent from a page of this sandbox, or the page is too old.")
    advice = _("Open the page again and send the form from there. A cookie must be allowed.")
    return _page(request, 403, _("This form cannot be accepted"), f"{lead} {advice}", hint=reason)


def server_error(request: HttpRequest) -> HttpResponse:
    """Say that the sandbox has failed; the terminal has the traceback."""
    if request.path_info.startswith(_API):
        return envelope.error(500, "INTERNAL_ERROR", "The sandbox has failed.")
    lead = _("This is a mistake of the sandbox. Its terminal shows the traceback.")
    context = {"status": 500, "title": _("The sandbox has failed"), "lead": lead}
    # Without the request: its session and its user may be what fails.
    return HttpResponse(render_to_string("sandbox/error.html", context), status=500)


def _page(request: HttpRequest, status: int, title: str, lead: str, **more: object) -> HttpResponse:
    context = {"status": status, "title": title, "lead": lead, **more}
    return render(request, "sandbox/error.html", context, status=status)


def _addresses() -> Iterator[str]:
    """Yield the addresses that take no parameter."""
    return _flat("/", get_resolver().url_patterns)


def _flat(prefix: str, patterns: list[URLPattern | URLResolver]) -> Iterator[str]:
    for each in patterns:
        address = prefix + str(each.pattern)
        if isinstance(each, URLResolver):
            yield from _flat(address, each.url_patterns)
        elif not set("<^") & set(address):
            yield address
