"""The developer's session, separate from account sessions, and valid where its password is."""

from collections.abc import Callable
from functools import wraps

from django.contrib.sessions.backends.db import SessionStore
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render, resolve_url
from django.utils.http import urlencode
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST

from django_identity.sandbox.developer.forms import (
    DEVELOPER_EMAIL,
    DEVELOPER_PASSWORD,
    DeveloperSignInForm,
    Proof,
)
from django_identity.sandbox.pages.navigation import next_address
from django_identity.sandbox.server import callers

COOKIE = "sandbox_portal_session"
LIFETIME_SECONDS = 12 * 60 * 60
_COOKIE_PATH = "/"
_PROOF = "developer_proof"

Page = Callable[..., HttpResponseBase]


def developer_required(page: Page) -> Page:
    """Show ``page`` only to the signed-in developer. Others are asked to sign in."""

    @wraps(page)
    def view(request: HttpRequest, **parts: object) -> HttpResponseBase:
        if _is_developer(request):
            return page(request, **parts)
        query = urlencode({"next": request.get_full_path()})
        return redirect(f"{resolve_url('portal_sign_in')}?{query}")

    return view


@sensitive_post_parameters("password")
@require_http_methods(["GET", "POST"])
def sign_in(request: HttpRequest) -> HttpResponse:
    """Sign the developer in and redirect to the requested page."""
    is_local = callers.is_local(request)
    form = DeveloperSignInForm(request.POST or None, is_local=is_local)
    if not form.is_valid():
        context = {
            "form": form,
            "next": next_address(request),
            "developer_email": DEVELOPER_EMAIL,
            "developer_password": DEVELOPER_PASSWORD if is_local else "",
        }
        return render(request, "sandbox/portal/sign_in.html", context)
    response = redirect(next_address(request) or resolve_url("portal"))
    response.set_cookie(
        COOKIE,
        _begin(form.proof),
        path=_COOKIE_PATH,
        httponly=True,
        samesite="Lax",
        secure=request.is_secure(),
    )
    return response


@require_POST
def sign_out(request: HttpRequest) -> HttpResponse:
    """End the session."""
    SessionStore(request.COOKIES.get(COOKIE)).delete()
    response = redirect("portal_sign_in")
    response.delete_cookie(COOKIE, path=_COOKIE_PATH)
    return response


def _begin(proof: Proof) -> str:
    """Begin a session and return its key for the cookie."""
    session = SessionStore()
    session[_PROOF] = proof
    session.set_expiry(LIFETIME_SECONDS)
    session.create()
    return str(session.session_key)


def console_required(page: Page) -> Page:
    """Show ``page`` to this machine without sign-in, and to others as ``developer_required``."""
    for_developers = developer_required(page)

    @wraps(page)
    def view(request: HttpRequest, **parts: object) -> HttpResponseBase:
        shown = page if callers.is_local(request) else for_developers
        return shown(request, **parts)

    return view


def _is_developer(request: HttpRequest) -> bool:
    """Return whether the request's session is valid for its origin."""
    proof = SessionStore(request.COOKIES.get(COOKIE)).get(_PROOF)
    return proof == Proof.TOKEN or (proof == Proof.PASSWORD and callers.is_local(request))
