"""The developer's session: one token, in a cookie of the pages or as Bearer of the endpoints."""

from collections.abc import Callable
from functools import wraps

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render, resolve_url
from django.utils.crypto import constant_time_compare
from django.utils.http import urlencode
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST

from django_identity.sandbox.pages.destinations import next_address
from django_identity.sandbox.portal.forms import (
    DEVELOPER_EMAIL,
    DEVELOPER_PASSWORD,
    DeveloperSignInForm,
)

COOKIE = "sandbox_portal_session"
_COOKIE_PATH = "/portal/"

Page = Callable[..., HttpResponse]


def is_token(text: str) -> bool:
    """Return whether ``text`` is the developer portal session token."""
    return constant_time_compare(text, settings.SANDBOX_PORTAL_TOKEN)


def developer_required(page: Page) -> Page:
    """Let nobody but the signed-in developer see ``page``; others are asked to sign in."""

    @wraps(page)
    def view(request: HttpRequest, **parts: object) -> HttpResponse:
        if is_token(request.COOKIES.get(COOKIE, "")):
            return page(request, **parts)
        query = urlencode({"next": request.get_full_path()})
        return redirect(f"{resolve_url('portal_sign_in')}?{query}")

    return view


@sensitive_post_parameters("password")
@require_http_methods(["GET", "POST"])
def sign_in(request: HttpRequest) -> HttpResponse:
    """Sign the developer in and send them to where they were going."""
    form = DeveloperSignInForm(request.POST or None)
    if not form.is_valid():
        context = {
            "form": form,
            "next": next_address(request),
            "developer_email": DEVELOPER_EMAIL,
            "developer_password": DEVELOPER_PASSWORD,
        }
        return render(request, "sandbox/portal/sign_in.html", context)
    response = redirect(next_address(request) or resolve_url("portal"))
    response.set_cookie(
        COOKIE,
        settings.SANDBOX_PORTAL_TOKEN,
        path=_COOKIE_PATH,
        httponly=True,
        samesite="Lax",
        secure=request.is_secure(),
    )
    return response


@require_POST
def sign_out(request: HttpRequest) -> HttpResponse:
    """Forget the developer in this browser."""
    response = redirect("portal_sign_in")
    response.delete_cookie(COOKIE, path=_COOKIE_PATH)
    return response
