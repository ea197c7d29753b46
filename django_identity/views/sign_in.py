"""The login page, the redirect to the service, and the callback."""

import re
import secrets
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.contrib.auth.models import AbstractBaseUser
from django.http import (
    HttpRequest,
    HttpResponse,
    HttpResponseBase,
    HttpResponseRedirect,
)
from django.shortcuts import redirect
from django.urls import NoReverseMatch
from django.utils.translation import gettext_lazy

from django_identity import conf
from django_identity.backends import begin_session
from django_identity.lifecycle.arriving import sign_in
from django_identity.lifecycle.standing import standing, step_up
from django_identity.logs import LogEvent, log
from django_identity.models import Purpose
from django_identity.requirements import (
    NotARequirement,
    RequiredScope,
    Requirement,
    is_level,
    parse,
)
from django_identity.texts import advice, labels
from django_identity.views import flow
from django_identity.views.pages import (
    address_of,
    explained,
    page,
    path_of,
    status_words,
    tell,
    why_asked,
)

DONE = {
    Purpose.SIGN_IN: gettext_lazy("You are signed in."),
    Purpose.LINK: gettext_lazy("Your account is connected to %(service)s."),
    Purpose.RENEW: gettext_lazy("Your details were checked again."),
}
HOP_MARK = "same_site"
BROWSER_KEY = re.compile(r"[A-Za-z0-9_-]{43}")


@flow.open_page("GET", "HEAD", "POST")
def login(request: HttpRequest) -> HttpResponseBase:
    """GET shows the button and the requested scopes. POST starts the sign-in."""
    if request.method != "POST":
        return _button_page(request)
    next_url = flow.safe_next(request.POST.get("next", ""))
    more = request.POST.get("scope", "")
    address, browser_key = begin_sign_in(request, next_url=next_url, more=more)
    response = HttpResponseRedirect(address)
    set_browser_cookie(response, browser_key, request=request)
    return response


# The HEAD request of a link preview must not spend the code.
@flow.open_page("GET")
def callback(request: HttpRequest) -> HttpResponseBase:
    """Complete the sign-in when the service redirects the person back. GET only."""
    query = {name: request.GET.getlist(name) for name in ("state", "code", "error")}
    returned = sign_in.Callback.parse(**query)
    # From the service, a browser leaves out a strict session cookie. Django takes any case.
    is_strict = str(settings.SESSION_COOKIE_SAMESITE).lower() == "strict"
    if is_strict and HOP_MARK not in request.GET:
        return _hop(request)
    user = flow.signed_in_user(request)
    completed = complete_sign_in(request, returned, user=user)
    if completed.linked is not None:
        names = advice.names_for(request)
        done = advice.fill(DONE[completed.purpose], names)
        tell(request, f"{done} {status_words(completed.linked)}")
    return redirect(flow.landing_url(completed.next_url))


def complete_sign_in(
    request: HttpRequest,
    returned: sign_in.Callback,
    *,
    user: AbstractBaseUser | None,
) -> sign_in.Completed:
    """Complete a sign-in. Sign the browser in if it grants a session, and note the return.

    ``user``: who is signed in here already.
    """
    browser_key = browser_key_of(request)
    completed = sign_in.complete(returned, browser_key=browser_key, user=user)
    linked = completed.linked
    if linked is not None:
        former_key = request.session.session_key
        if completed.purpose == Purpose.SIGN_IN:
            begin_session(request, linked.user, linked)
        step_up.note(request.session, linked, former_key=former_key)
    log(LogEvent.SIGN_IN_COMPLETED)
    return completed


def _button_page(request: HttpRequest) -> HttpResponse:
    next_url = flow.safe_next(request.GET.get("next", ""))
    requirement = _asked_by(request.GET.get("missing", ""))
    user = flow.signed_in_user(request)
    person = standing.standing_of(user)
    asked = ""
    shortfall = None
    if requirement is not None:
        asked = str(requirement)
        shortfall = person.shortfall(requirement)
    plan = sign_in.plan_for(user, more=asked)
    # A Connect code brings a KYC level and no claims, to whom no full sign-in has verified.
    takes_code = plan.purpose == Purpose.LINK or person.identity.connect_only
    context: dict[str, Any] = {
        "purpose": plan.purpose,
        "next": next_url,
        "missing": asked,
        "scope": asked if asked in conf.application().later_scopes else "",
        "shortfall": shortfall,
        "scopes": explained(plan.scopes),
        "why": why_asked(asked),
        "offers_code": takes_code and (not asked or is_level(asked)),
    }
    if user is None:
        context["local_sign_in_url"] = flow.local_sign_in_url(coming_back_to=next_url)
    else:
        context["advice"] = advice.advice_on(shortfall, request)
    is_closed = shortfall is not None
    template = "django_identity/login.html"
    return page(request, template, context, is_closed=is_closed)


def _asked_by(missing: str) -> Requirement | None:
    """What a link says that a gate asks for. A link may name only what pages have words for."""
    application = conf.application()
    if missing in {*application.scopes, *application.later_scopes}:
        return RequiredScope(missing)
    try:
        requirement = parse(missing)
    except NotARequirement:
        return None
    if not labels.has_words(requirement):
        return None
    return requirement


def _hop(request: HttpRequest) -> HttpResponse:
    """A page that opens the same address again. From this site the browser sends all cookies."""
    query = request.GET.copy()
    query[HOP_MARK] = "1"
    context = {"address": f"{path_of(request)}?{query.urlencode()}"}
    return page(request, "django_identity/same_site_hop.html", context)


def begin_sign_in(
    request: HttpRequest,
    *,
    next_url: str,
    more: str,
) -> tuple[str, str]:
    """Begin a sign-in for this browser. ``next_url`` is a page to which it may lead.

    ``more``: a scope of ``LATER_SCOPES``; any other text asks for nothing more.

    Returns the address to which the browser is sent, and the key for ``set_browser_cookie``.
    """
    browser_key = browser_key_of(request) or secrets.token_urlsafe(32)
    redirect_uri = conf.application().redirect_uri
    if redirect_uri is None:
        redirect_uri = request.build_absolute_uri(address_of("callback"))
    address = sign_in.begin(
        user=flow.signed_in_user(request),
        next_url=next_url,
        redirect_uri=redirect_uri,
        browser_key=browser_key,
        more=more,
    )
    return address, browser_key


def leads_back_to_a_page() -> bool:
    """Whether the service leads people back to our callback page, and not to one of a front end."""
    redirect_uri = conf.application().redirect_uri
    if redirect_uri is None:
        return True
    # The origin may be another than this request's: that is why a site sets the address.
    path = urlsplit(redirect_uri).path
    try:
        return path == address_of("callback")
    except NoReverseMatch:
        return False


def set_browser_cookie(
    response: HttpResponseBase, key: str, *, request: HttpRequest
) -> None:
    """Set the browser's cookie, for as long as a sign-in may take."""
    response.set_cookie(
        _cookie_name(request),
        key,
        max_age=sign_in.SIGN_IN_LIFETIME,
        secure=request.is_secure(),
        httponly=True,
        samesite="Lax",
    )


def browser_key_of(request: HttpRequest) -> str | None:
    """The key in the browser's cookie, or None."""
    # As the browser sent it. Django also takes a name behind a space of Unicode, where browsers see
    # no prefix: another host of the domain could set it, and sign people in as somebody else.
    for cookie in request.META.get("HTTP_COOKIE", "").split(";"):
        name, _, key = cookie.strip(" ").partition("=")
        if name == _cookie_name(request) and BROWSER_KEY.fullmatch(key):
            return str(key)
    return None


def _cookie_name(request: HttpRequest) -> str:
    """The cookie's name. Over https it has the prefix that stops other hosts of the domain."""
    if request.is_secure():
        return "__Host-identity_browser"
    return "identity_browser"
