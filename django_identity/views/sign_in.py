"""The login page, the redirect to the service, and the callback."""

from typing import Any

from django.conf import settings
from django.http import (
    HttpRequest,
    HttpResponse,
    HttpResponseBase,
    HttpResponseRedirect,
)
from django.shortcuts import redirect
from django.utils.translation import gettext_lazy

from django_identity import conf
from django_identity.lifecycle.arriving import sign_in
from django_identity.lifecycle.standing import standing
from django_identity.models import Purpose
from django_identity.policy.names import names_for
from django_identity.requirements import (
    NotARequirement,
    RequiredScope,
    Requirement,
    is_level,
    parse,
)
from django_identity.texts import advice, labels
from django_identity.web import answers, browser, flow
from django_identity.web.pages import (
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


@flow.open_page("GET", "HEAD", "POST")
def login(request: HttpRequest) -> HttpResponseBase:
    """GET shows the button and the requested scopes. POST starts the sign-in."""
    if request.method != "POST":
        return _button_page(request)
    next_url = flow.safe_next(request.POST.get("next", ""))
    more = request.POST.get("scope", "")
    address, browser_key = browser.begin_sign_in(request, next_url=next_url, more=more)
    response = HttpResponseRedirect(address)
    browser.set_cookie(response, browser_key, request=request)
    return response


# The HEAD request of a link preview must not spend the code.
@flow.open_page("GET", refuse=answers.keep_error)
def callback(request: HttpRequest) -> HttpResponseBase:
    """Complete the sign-in when the service redirects the person back. GET only.

    A refusal leads to a page that may be loaded again: this one may not, its code is spent.
    """
    query = {name: request.GET.getlist(name) for name in ("state", "code", "error")}
    returned = sign_in.Callback.parse(**query)
    # From the service, a browser leaves out a strict session cookie. Django takes any case.
    is_strict = str(settings.SESSION_COOKIE_SAMESITE).lower() == "strict"
    if is_strict and browser.HOP_MARK not in request.GET:
        return _hop(request)
    user = flow.signed_in_user(request)
    completed = browser.complete_sign_in(request, returned, user=user)
    if completed.linked is not None:
        names = names_for(request)
        done = advice.fill(DONE[completed.purpose], names)
        tell(request, f"{done} {status_words(completed.linked)}")
    return redirect(flow.landing_url(completed.next_url))


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
    query[browser.HOP_MARK] = "1"
    context = {"address": f"{path_of(request)}?{query.urlencode()}"}
    return page(request, "django_identity/same_site_hop.html", context)
