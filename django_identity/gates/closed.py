"""What a closed gate answers. Why it is closed: ``lifecycle.standing.shortfalls``.

Scripts get a problem: 401 with ``not_signed_in``, or 403 with the code of the requirement. Browsers
get a redirect to the login page, or a page that explains (403). A view of Django REST framework
answers as ``api.problems`` says.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import urlsplit

from django.conf import settings
from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import ImproperlyConfigured
from django.http import HttpRequest, HttpResponse, HttpResponseBase, JsonResponse
from django.shortcuts import redirect, resolve_url
from django.urls import NoReverseMatch
from django.utils.cache import patch_cache_control, patch_vary_headers
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext as _

from django_identity import conf
from django_identity.exceptions import Recovery
from django_identity.policy.names import names_for
from django_identity.reasons import Shortfall
from django_identity.requirements import RecentSignIn, RequiredScope, Requirement
from django_identity.texts import advice
from django_identity.texts.labels import heading_of
from django_identity.web.pages import NEVER_CACHED, address_of, page, path_of, why_asked
from django_identity.web.problems import CHALLENGE, MEDIA_TYPE, problem_body
from django_identity.web.sessions import drop_ended_session

ANSWERS = ("redirect", "forbid", "problem")
OnClosed = (
    Literal["redirect", "forbid", "problem"]
    | Callable[[HttpRequest, "Closed"], HttpResponseBase]
)

NOT_SIGNED_IN = "not_signed_in"
HTMX = ("HX-Request", "HX-Current-URL")
PAGE = "text/html"
JSON = ("application/json", MEDIA_TYPE)
PLAIN = "text/plain; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Closed:
    """Why a gate is closed: the first ``requirement`` that is missing.

    ``shortfall`` is the reason for a signed-in person, else None.
    """

    requirement: Requirement
    shortfall: Shortfall | None

    @property
    def code(self) -> str:
        """A stable code: ``claim_missing``, ``not_signed_in`` and the like."""
        if self.shortfall is None:
            return NOT_SIGNED_IN
        return self.requirement.code

    @property
    def asked(self) -> str:
        """The missing claim with its values, the level or the scope."""
        return str(self.requirement)

    @property
    def missing(self) -> str:
        """The claim's name alone, or all of ``asked``."""
        return self.asked.partition("=")[0]

    @property
    def status(self) -> int:
        """403 for a signed-in person, else 401."""
        if self.shortfall is None:
            return 401
        return 403

    @property
    def detail(self) -> str:
        """For the person: why the gate is closed, and what opens it."""
        advised = advice.advice_on(self.shortfall, None)
        if advised is not None:
            return f"{advised.title}. {advised.sentence} {advised.step}"
        step = _("Continue with %(service)s to show it.")
        heading = heading_of(self.asked)
        return f"{heading}. {advice.fill(step, names_for(None))}"

    def problem(self) -> dict[str, Any]:
        """The JSON body of the answer."""
        if self.shortfall is None:
            recovery = Recovery.SIGN_IN_TO_LINK
        elif self.shortfall.reference:
            recovery = Recovery.CONTACT
        elif advice.REASONS[self.shortfall.reason].first:
            recovery = Recovery.VERIFY
        else:
            recovery = Recovery.RESTART
        return problem_body(
            self.status,
            code=self.code,
            detail=self.detail,
            missing=self.asked,
            recovery=recovery,
        )


def closed_response(
    request: HttpRequest,
    closed: Closed,
    *,
    on_closed: OnClosed = "redirect",
) -> Any:
    """What a closed gate answers, with its headers, for a question of the site's own::

        closed = closed_to(Gate(f"country_resident={offer.country}"), request.user)
        if closed:
            return closed_response(request, closed, on_closed="problem")

    It may read from the database. An async view awaits ``sync_to_async(closed_response)(…)``.
    """
    require_answer(on_closed)
    if closed.code == NOT_SIGNED_IN:
        drop_ended_session(request)
    if callable(on_closed):
        return keep_private(on_closed(request, closed))
    if on_closed == "problem":
        return keep_private(_problem(closed))
    return keep_private(_chosen_by_headers(request, on_closed, closed), "Accept", *HTMX)


def require_answer(on_closed: object) -> None:
    """Raise ``ImproperlyConfigured`` unless ``on_closed`` says what a closed gate answers."""
    if on_closed not in ANSWERS and not callable(on_closed):
        names = ", ".join(f'"{answer}"' for answer in ANSWERS)
        raise ImproperlyConfigured(
            f"on_closed is {names} or a callable, not {on_closed!r}.",
        )


def keep_private(response: Any, *headers: str) -> Any:
    """Mark ``response`` as private, varying by cookie and by ``headers``, and return it.

    A cache decorator above the gate then passes the response by.
    """
    if isinstance(response, HttpResponseBase):
        patch_vary_headers(response, ("Cookie", *headers))
        patch_cache_control(response, private=True)
    return response


def _chosen_by_headers(
    request: HttpRequest,
    on_closed: Literal["redirect", "forbid"],
    closed: Closed,
) -> HttpResponseBase:
    if _prefers_json(request):
        return _problem(closed)
    next_url = _page_to_come_back_to(request, closed)
    try:
        way_in = address_of("login", next=next_url, missing=closed.asked)
    except NoReverseMatch:
        return _answer_without_us(request, on_closed, closed, next_url)
    if on_closed == "forbid":
        return _explain(request, closed, way_in=way_in, next_url=next_url)
    return _lead_to(way_in, request)


def _prefers_json(request: HttpRequest) -> bool:
    try:
        return request.get_preferred_type([PAGE, *JSON]) in JSON
    except (ValueError, LookupError):
        # Django cannot read the header, such as ``text/html;x*=unknown'en'a``.
        return False


def _lead_to(address: str, request: HttpRequest) -> HttpResponse:
    if request.headers.get("HX-Request") == "true":
        return HttpResponse(status=204, headers={"HX-Redirect": address})
    return redirect(address)


def _answer_without_us(
    request: HttpRequest,
    on_closed: Literal["redirect", "forbid"],
    closed: Closed,
    next_url: str,
) -> HttpResponse:
    """On a host whose URLconf lacks our addresses: lead to ``LOGIN_URL``, or say what is missing.

    A sign-in there proves no claim, so only anonymous visitors are led there.
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


def _problem(closed: Closed) -> HttpResponseBase:
    response = JsonResponse(
        closed.problem(),
        status=closed.status,
        content_type=MEDIA_TYPE,
    )
    # A 401 names a way to sign in (RFC 9110 §11.6.1).
    if closed.status == 401:
        response["WWW-Authenticate"] = CHALLENGE
    return response


def _page_to_come_back_to(request: HttpRequest, closed: Closed) -> str:
    """The page to come back to; an empty text after a POST, which is never replayed.

    A part for HTMX leads back to its page.
    """
    # After a step-up the page of a form is shown again.
    is_step_up = (
        isinstance(closed.requirement, RecentSignIn) and closed.shortfall is not None
    )
    if request.method not in ("GET", "HEAD") and not is_step_up:
        return ""
    current = request.headers.get("HX-Current-URL", "")
    if url_has_allowed_host_and_scheme(current, {request.get_host()}):
        shown = urlsplit(current)
        if shown.query:
            return f"{shown.path}?{shown.query}"
        return shown.path
    return path_of(request, with_query=True)


def _explain(
    request: HttpRequest,
    closed: Closed,
    *,
    way_in: str,
    next_url: str,
) -> HttpResponse:
    """The page about the missing proof, the reason, and the next step (403)."""
    context = {
        "closed": closed,
        "advice": advice.advice_on(closed.shortfall, request),
        "why": why_asked(closed.asked),
        "way_in": way_in,
        "next": next_url,
    }

    is_scope = isinstance(closed.requirement, RequiredScope)
    if is_scope and closed.asked in conf.application().later_scopes:
        context["scope"] = closed.asked

    template = "django_identity/gate_closed.html"
    response = page(request, template, context, status=403, is_closed=True)
    response["Cache-Control"] = NEVER_CACHED
    # The page has a sign-in button, so other sites must not frame it.
    response["X-Frame-Options"] = "DENY"
    return response
