"""A closed gate: why it is closed, and what it answers."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import urlsplit

from django.conf import settings
from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponse, HttpResponseBase, JsonResponse
from django.shortcuts import redirect, resolve_url
from django.urls import NoReverseMatch
from django.utils.cache import patch_cache_control, patch_vary_headers
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext as _

from django_identity import conf
from django_identity.exceptions import Recovery
from django_identity.lifecycle.standing import Shortfall
from django_identity.texts import advice
from django_identity.texts.labels import in_words
from django_identity.views.pages import NEVER_CACHED, address_of, page, path_of, why_asked
from django_identity.views.problems import CHALLENGE, MEDIA_TYPE, problem_body

OnClosed = Literal["redirect", "forbid"] | Callable[[HttpRequest, "Closed"], HttpResponseBase]

NOT_SIGNED_IN = "not_signed_in"
HTMX = ("HX-Request", "HX-Current-URL")
PAGE, JSON = "text/html", ("application/json", MEDIA_TYPE)
PLAIN = "text/plain; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Closed:
    """Why a gate is closed: a stable ``code``, and ``asked``, the missing claim or level.

    A claim has its required value (``"country_resident=NG"``). ``shortfall`` is the reason for a
    signed-in person.
    """

    code: str
    asked: str
    application: str
    shortfall: Shortfall | None

    @property
    def missing(self) -> str:
        """The claim without its value, or all of ``asked``."""
        return self.asked.partition("=")[0]

    @property
    def status(self) -> int:
        """401 if nobody is signed in, else 403."""
        return 401 if self.code == NOT_SIGNED_IN else 403

    @property
    def detail(self) -> str:
        """For the person: why the gate is closed, and what opens it."""
        application = conf.application(self.application)
        if told := advice.advice_on(self.shortfall, None, application):
            return f"{told.title}. {told.sentence} {told.step}"
        names = advice.names_for(None, application) | {"proof": in_words(self.asked)}
        return advice.fill(_("Continue with %(service)s to show: %(proof)s."), names)

    def problem(self) -> dict[str, Any]:
        """The JSON body of the answer."""
        if self.shortfall is None:
            recovery = Recovery.SIGN_IN_TO_LINK
        elif advice.REASONS[self.shortfall.reason].first:
            recovery = Recovery.VERIFY
        else:
            recovery = Recovery.RESTART
        return problem_body(
            self.status, code=self.code, detail=self.detail, missing=self.asked, recovery=recovery
        )


def answer(request: HttpRequest, on_closed: OnClosed, closed: Closed) -> Any:
    if callable(on_closed):
        return keep_private(on_closed(request, closed))
    return keep_private(_own_answer(request, on_closed, closed), "Accept", *HTMX)


def keep_private(response: Any, *headers: str) -> Any:
    """Mark ``response`` as private, varying by cookie and by ``headers``, and return it.

    A cache decorator above the gate then does not store the response.
    """
    if isinstance(response, HttpResponseBase):
        patch_vary_headers(response, ("Cookie", *headers))
        patch_cache_control(response, private=True)
    return response


def _own_answer(
    request: HttpRequest, on_closed: Literal["redirect", "forbid"], closed: Closed
) -> HttpResponseBase:
    if request.get_preferred_type([PAGE, *JSON]) in JSON:
        headers = {"WWW-Authenticate": CHALLENGE} if closed.code == NOT_SIGNED_IN else {}
        return JsonResponse(
            closed.problem(), status=closed.status, headers=headers, content_type=MEDIA_TYPE
        )
    application = conf.application(closed.application)
    # After a step-up the page of a form is shown again. A POST is never replayed.
    is_page = request.method in ("GET", "HEAD") or closed.code == "sign_in_not_recent"
    next_url = _page_of(request) if is_page else ""
    try:
        way_in = address_of("login", application, next=next_url, missing=closed.asked)
    except NoReverseMatch:
        return _answer_without_us(request, on_closed, closed, next_url)
    if on_closed == "forbid":
        return _explain(request, closed, {"way_in": way_in, "next": next_url})
    return _lead_to(way_in, request)


def _lead_to(address: str, request: HttpRequest) -> HttpResponse:
    if request.headers.get("HX-Request") == "true":
        return HttpResponse(status=204, headers={"HX-Redirect": address})
    return redirect(address)


def _answer_without_us(
    request: HttpRequest, on_closed: Literal["redirect", "forbid"], closed: Closed, next_url: str
) -> HttpResponse:
    """On a host whose URLconf lacks our addresses: lead to ``LOGIN_URL``, or say what is missing.

    Signing in there again would prove nothing, so it is for those who are not signed in.
    """
    if on_closed == "redirect" and closed.code == NOT_SIGNED_IN:
        with suppress(NoReverseMatch):
            return _lead_to(_login_url(request, next_url), request)
    return HttpResponse(closed.detail, status=403, content_type=PLAIN)


def _login_url(request: HttpRequest, next_url: str) -> str:
    """The site's own login page, as Django's decorators lead to it. Raises ``NoReverseMatch``."""
    login_url = resolve_url(settings.LOGIN_URL)
    if urlsplit(login_url).netloc not in ("", request.get_host()):
        next_url = request.build_absolute_uri(next_url)
    return redirect_to_login(next_url, login_url).url


def _page_of(request: HttpRequest) -> str:
    """The page to come back to. A part that HTMX asks for leads back to the page it is in."""
    current = request.headers.get("HX-Current-URL", "")
    if url_has_allowed_host_and_scheme(current, {request.get_host()}):
        shown = urlsplit(current)
        return f"{shown.path}?{shown.query}" if shown.query else shown.path
    return path_of(request, with_query=True)


def _explain(request: HttpRequest, closed: Closed, ways: dict[str, str]) -> HttpResponse:
    """The page that says which proof is missing, why, and how to get it (403)."""
    application = conf.application(closed.application)
    context = {
        "closed": closed,
        "advice": advice.advice_on(closed.shortfall, request, application),
        "why": why_asked(application, closed.asked)[0][1],
        "scope": closed.asked if closed.asked in application.later_scopes else "",
        **ways,
    }
    template = "django_identity/gate_closed.html"
    response = page(request, application, template, context, status=403, is_closed=True)
    response["Cache-Control"] = NEVER_CACHED
    # The page has a sign-in button, so other sites must not frame it.
    response["X-Frame-Options"] = "DENY"
    return response
