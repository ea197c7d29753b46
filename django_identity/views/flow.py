"""Shared by all views of the flow: headers, application, user, addresses."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec
from urllib.parse import urlencode

from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.models import AbstractBaseUser
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import render, resolve_url
from django.utils.http import url_has_allowed_host_and_scheme

from django_identity import conf, policy
from django_identity.exceptions import (
    IdentityError,
    PlainHttpRefused,
    Recovery,
)
from django_identity.telemetry import LogEvent, log_failure
from django_identity.views.addresses import login_url

LONGEST_NEXT = 2000

P = ParamSpec("P")
View = Callable[Concatenate[HttpRequest, P], HttpResponseBase]


def flow_view(view: View[P]) -> View[P]:
    """Decorate a view of the flow: not cached, not framed, no referrer.

    The view is reachable under ``LoginRequiredMiddleware``. It runs outside ``ATOMIC_REQUESTS``, so
    that committed changes stay if the rest of the request fails.
    """

    @wraps(view)
    def wrapped(request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponseBase:
        try:
            response = view(request, *args, **kwargs)
        except PlainHttpRefused as error:
            alias = str(kwargs.get("alias", conf.DEFAULT_ALIAS))
            response = failure(request, LogEvent.SIGN_IN_FAILED, error, conf.application(alias))
        response["Cache-Control"] = "no-store"
        response["Referrer-Policy"] = "no-referrer"
        response["X-Frame-Options"] = "DENY"
        return response

    return login_not_required(transaction.non_atomic_requests(wrapped))


def application_or_404(alias: str) -> conf.Application:
    """The application with this alias. Raises ``Http404`` for an unknown alias."""
    if alias not in conf.aliases():
        raise Http404(alias)
    return conf.application(alias)


def application_of(request: HttpRequest, alias: str) -> conf.Application:
    """The application of a page for people. Raises ``Http404``; ``PlainHttpRefused``.

    A live application has no pages over plain http, because codes, cookies and personal data would
    be readable on the network.
    """
    application = application_or_404(alias)
    if application.environment == "live" and not request.is_secure():
        raise PlainHttpRefused(
            "live over plain http; if a proxy ends TLS, set SECURE_PROXY_SSL_HEADER"
        )
    return application


def signed_in_user(request: HttpRequest) -> AbstractBaseUser | None:
    """The signed-in user, or None. Another principal with the number of a user is no user."""
    user = request.user
    return user if user.is_authenticated and isinstance(user, get_user_model()) else None


def client_address(request: HttpRequest, application: conf.Application) -> str:
    """The person's network address, as the site's policy reads it."""
    return policy.load(application.policy).client_address(request)


def safe_next(given: str) -> str:
    """``given`` if it is a path of this site, else an empty text.

    Absolute addresses are refused: they would have to be compared with the request's host.
    """
    is_path = given.startswith("/") and len(given) <= LONGEST_NEXT and given.isprintable()
    if is_path and url_has_allowed_host_and_scheme(given, allowed_hosts=None):
        return given
    return ""


def landing_url(next_url: str) -> str:
    """The page after a completed flow."""
    return next_url or resolve_url(settings.LOGIN_REDIRECT_URL)


def failure(
    request: HttpRequest, event: LogEvent, error: IdentityError, application: conf.Application
) -> HttpResponse:
    """Log the error and show the page with the error and the next step."""
    log_failure(event, error, application=application.alias)
    links_afterwards = error.recovery is Recovery.SIGN_IN_TO_LINK
    restart_url = login_url(application, next_url=error.next_url)
    other_way = (
        local_sign_in_url(application, coming_back_to=restart_url) if links_afterwards else None
    )
    context = {
        "error": error,
        "application": application,
        "restart_url": restart_url,
        "local_sign_in_url": other_way,
    }
    response = render(request, "django_identity/error.html", context, status=error.http_status)
    if seconds := math.ceil(getattr(error, "retry_after", 0)):
        response["Retry-After"] = str(seconds)
    return response


def local_sign_in_url(application: conf.Application, *, coming_back_to: str) -> str | None:
    """The site's own sign-in page, if any. It returns to ``coming_back_to``."""
    page = policy.load(application.policy).local_sign_in_url()
    if not page:
        return None
    address = resolve_url(page)
    return f"{address}?{urlencode({'next': coming_back_to})}" if coming_back_to else address
