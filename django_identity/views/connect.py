"""Verification with a Connect code: the form, and the page after it."""

from datetime import timedelta
from typing import Any

from django.contrib.auth.models import AbstractBaseUser as Person
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect
from django.utils import timezone
from django.views.decorators.debug import sensitive_post_parameters

from django_identity import conf, flows
from django_identity.exceptions import IdentityError
from django_identity.lifecycle.arriving import connect as codes
from django_identity.logs import LogEvent, log_failure
from django_identity.service.connect import LONGEST_PASTE
from django_identity.service.webhooks import VERIFIED
from django_identity.web import flow
from django_identity.web.pages import (
    address_of,
    error_page,
    explained,
    page,
    status_words,
)
from django_identity.web.sessions import end_disconnected_session

# The errors that a person mends by typing the code again, or another one.
ABOUT_CODE = ("connect_code_malformed", "invalid_connect_code")


@flow.open_page("GET", "HEAD", "POST", failed=LogEvent.CONNECT_FAILED)
@sensitive_post_parameters("connect_code")
def connect(request: HttpRequest) -> HttpResponseBase:
    """GET shows the form and the requested scopes. POST redeems the code."""
    user = flow.signed_in_user(request)
    query = request.GET
    if request.method == "POST":
        query = request.POST
    next_url = flow.safe_next(query.get("next", ""))
    if user is None:
        # People with a code sign in on the site's own page, if it has one.
        back = address_of("connect", next=next_url)
        own = flow.local_sign_in_url(coming_back_to=back)
        return redirect(own or address_of("login", next=back))
    if request.method != "POST":
        return _page(request, next_url, None)
    try:
        flows.redeem_code(request.POST.get("connect_code", ""), user=user)
    except IdentityError as error:
        log_failure(LogEvent.CONNECT_FAILED, error)
        return _page(request, next_url, error)
    return redirect(address_of("connected", next=next_url))


@flow.own_page("GET", "HEAD", "POST", failed=LogEvent.DISCONNECT_FAILED)
def connected(request: HttpRequest, user: Person) -> HttpResponseBase:
    """GET says whose code it was. POST undoes it: it removes the link that the code made."""
    account = address_of("account")
    if request.method == "POST":
        # A second press has nothing to undo.
        if not codes.undo(user):
            return redirect(account)
        end_disconnected_session(request)
        return page(request, "django_identity/undone.html")
    identity = codes.identity_of(user)
    next_url = flow.safe_next(request.GET.get("next", "")) or account
    if identity is None or identity.connect_issued_at is None:
        return redirect(next_url)
    context = {
        "identity": identity,
        "status_line": status_words(identity),
        "is_verified": identity.kyc_status == VERIFIED,
        "next": next_url,
    }
    return page(request, "django_identity/connected.html", context)


def _page(
    request: HttpRequest,
    next_url: str,
    error: IdentityError | None,
) -> HttpResponse:
    """The empty form, below the error of the previous code if there was one."""
    context: dict[str, Any] = {
        "longest": LONGEST_PASTE,
        "next": next_url,
        "scopes": explained(conf.application().connect_scopes),
    }
    template = "django_identity/connect.html"
    if error is None:
        return page(request, template, context)
    context |= {
        "is_about_code": error.code in ABOUT_CODE,
        "is_spent": codes.is_spent(error),
        "most": codes.MOST_TRIES,
        "until": timezone.now() + timedelta(seconds=error.retry_after),
    }
    return error_page(request, template, error, context, by_code=True)
