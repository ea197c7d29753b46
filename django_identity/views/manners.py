"""What every view of the flow has in common: headers, application, who is there, where to go."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec
from urllib.parse import urlencode

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.models import AbstractBaseUser
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import render, resolve_url
from django.utils.http import url_has_allowed_host_and_scheme

from django_identity import conf, policy
from django_identity.addresses import login_url
from django_identity.exceptions import (
    ConfigurationError,
    FlowError,
    IdentityError,
    LinkingRefused,
    Recovery,
    ServiceError,
    ServiceUnavailable,
)
from django_identity.telemetry import LogEvent, log_failure

LONGEST_NEXT = 2000
# The first class that fits decides; the rest are failures of the site's own.
HTTP_STATUS: tuple[tuple[type[IdentityError], int], ...] = (
    (FlowError, 400),
    (LinkingRefused, 403),
    (ServiceUnavailable, 503),
    (ServiceError, 502),
    (ConfigurationError, 500),
    (IdentityError, 502),
)

P = ParamSpec("P")
View = Callable[Concatenate[HttpRequest, P], HttpResponseBase]


def flow_view(view: View[P]) -> View[P]:
    """A view of the flow: never stored, never framed, naming nobody where the person came from.

    Reachable under ``LoginRequiredMiddleware`` and outside ``ATOMIC_REQUESTS``: what a verb has
    committed stays so if the rest of the request fails.
    """

    @wraps(view)
    def mannered(request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponseBase:
        response = view(request, *args, **kwargs)
        response["Cache-Control"] = "no-store"
        response["Referrer-Policy"] = "no-referrer"
        response["X-Frame-Options"] = "DENY"
        return response

    return login_not_required(transaction.non_atomic_requests(mannered))


def application_or_404(alias: str) -> conf.Application:
    """The application named in the path. Raises ``Http404`` for an alias that is not set up."""
    if alias not in conf.aliases():
        raise Http404(alias)
    return conf.application(alias)


def signed_in_user(request: HttpRequest) -> AbstractBaseUser | None:
    """Who is signed in, or None."""
    return request.user if request.user.is_authenticated else None


def safe_next(given: str) -> str:
    """``given`` if it is a path of this site, else empty.

    Only paths: an absolute address would have to be compared with a host that the request names.
    """
    is_path = given.startswith("/") and len(given) <= LONGEST_NEXT and given.isprintable()
    if is_path and url_has_allowed_host_and_scheme(given, allowed_hosts=None):
        return given
    return ""


def landing_url(next_url: str) -> str:
    """Where to go when all is done."""
    return next_url or resolve_url(settings.LOGIN_REDIRECT_URL)


def failure(
    request: HttpRequest, event: LogEvent, error: IdentityError, application: conf.Application
) -> HttpResponse:
    """The page that says what happened and what to do next, and the one log line beside it."""
    log_failure(event, error, application=application.alias)
    links_afterwards = error.recovery is Recovery.SIGN_IN_TO_LINK
    context = {
        "error": error,
        "application": application,
        "restart_url": login_url(application, next_url=error.next_url),
        "local_sign_in_url": _local_sign_in_url(application, error) if links_afterwards else None,
    }
    status = next(status for kind, status in HTTP_STATUS if isinstance(error, kind))
    return render(request, "django_identity/error.html", context, status=status)


def _local_sign_in_url(application: conf.Application, error: IdentityError) -> str | None:
    """The site's own sign-in page, coming back to link the identity."""
    page = policy.load(application.policy).local_sign_in_url()
    if page is None:
        return None
    back = login_url(application, next_url=error.next_url)
    return f"{resolve_url(page)}?{urlencode({'next': back})}"
