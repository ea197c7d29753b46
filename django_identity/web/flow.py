"""Shared by all views of the flow: headers, user, addresses."""

import re
from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from typing import Any, NoReturn
from urllib.parse import urlencode

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.models import AbstractBaseUser
from django.http import HttpRequest, HttpResponse, HttpResponseBase, UnreadablePostError
from django.middleware.csrf import CsrfViewMiddleware
from django.shortcuts import redirect, resolve_url
from django.urls import reverse
from django.utils.decorators import decorator_from_middleware
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_http_methods

from django_identity import conf, database
from django_identity.boundary import boundary
from django_identity.exceptions import FlowError, IdentityError, Recovery
from django_identity.logs import LogEvent, log_failure
from django_identity.web.pages import NEVER_CACHED, address_of, error_page, path_of
from django_identity.web.sessions import drop_ended_session

LONGEST_NEXT = 2000
#: The address in Django's reason why a form is refused.
FOREIGN_ADDRESS = re.compile(
    r"(?<=checking failed - )"
    r"(?:(?P<origin>null|https?://[\w.:\[\]-]{1,255})(?=[/?# ]))?"
    r".*(?= does not match)",
    re.ASCII,
)

View = Callable[..., HttpResponseBase]
Refuse = Callable[[HttpRequest, IdentityError], HttpResponseBase]
Decorator = Callable[[View], View]


def in_flow(view: View) -> View:
    """Decorate a view of the flow: its responses are not cached, not framed, without a referrer.

    What a page tells its own site: ``pages.page``.

    The view is reachable under ``LoginRequiredMiddleware``. It runs outside ``ATOMIC_REQUESTS``, so
    that committed changes stay if the rest of the request fails. The site's middleware does not
    check the CSRF token: the view does.
    """

    @wraps(view)
    def wrapped(request: HttpRequest, /, *args: Any, **kwargs: Any) -> HttpResponseBase:
        response = view(request, *args, **kwargs)
        response["Cache-Control"] = NEVER_CACHED
        response["Referrer-Policy"] = "no-referrer"
        response["X-Frame-Options"] = "DENY"
        return response

    return csrf_exempt(login_not_required(database.non_atomic(wrapped)))


def open_page(
    *methods: str,
    failed: LogEvent = LogEvent.SIGN_IN_FAILED,
    refuse: Refuse | None = None,
) -> Decorator:
    """Decorate a page of the flow. Its forms need a CSRF token.

    An ``IdentityError`` is logged as ``failed`` and answered by ``refuse``, by default with its
    page. So is any other error, such as one of the site's policy: see ``boundary``.
    """

    def decorate(view: View) -> View:
        protected: View = boundary(require_http_methods(methods)(_with_token(view)))

        @wraps(view)
        def wrapped(request: HttpRequest) -> HttpResponseBase:
            try:
                refuse_plain_http(request)
                return protected(request)
            except IdentityError as error:
                log_failure(failed, error)
                return (refuse or problem_page)(request, error)

        # A template of the site may fail on the page of an error, too.
        return in_flow(boundary(wrapped))

    return decorate


def own_page(*methods: str, failed: LogEvent = LogEvent.UNEXPECTED) -> Decorator:
    """Decorate a page of the signed-in person. It is called with the user.

    Others go to the login page, which leads back to the account page.
    """

    def decorate(view: View) -> View:
        @wraps(view)
        def wrapped(request: HttpRequest) -> HttpResponseBase:
            user = signed_in_user(request)
            if user is not None:
                return view(request, user)
            return redirect(address_of("login", next=address_of("account")))

        return open_page(*methods, failed=failed)(wrapped)

    return decorate


class _TokenCheck(CsrfViewMiddleware):
    """Django's check of the CSRF token, with a page of our own in place of Django's.

    Django REST framework overrides the same method. The log has Django's own reason, because
    "form_expired" is also what a proxy causes that changes the scheme or the port.
    """

    def _reject(self, request: HttpRequest, reason: str) -> NoReturn:
        error = FlowError(FOREIGN_ADDRESS.sub(_origin_in, reason), code="form_expired")
        # Django refuses a form that did not arrive whole, too, and it cannot be read here either.
        with suppress(UnreadablePostError):
            error.next_url = safe_next(request.POST.get("next", ""))
        raise error


def _origin_in(found: re.Match[str]) -> str:
    """What the log says of a foreign address: path and query may tell of the person."""
    return found["origin"] or "another address"


_with_token: Any = decorator_from_middleware(_TokenCheck)


def refuse_plain_http(request: HttpRequest) -> None:
    """Raise ``FlowError`` on a live site over plain http: codes and cookies would be readable."""
    if conf.application().environment == "live" and not request.is_secure():
        raise FlowError(
            "live over plain http; if a proxy ends TLS, set SECURE_PROXY_SSL_HEADER",
            code="plain_http_refused",
        )


def signed_in_user(request: HttpRequest) -> AbstractBaseUser | None:
    """The signed-in user, or None. Another principal with the number of a user is no user.

    A session that has ended loses its data here.
    """
    user = request.user
    if database.is_account(user) and user.is_authenticated:
        return user
    drop_ended_session(request)
    return None


def safe_next(address: str) -> str:
    """``address`` if it is a path of this site, else an empty text.

    Absolute addresses are refused: they would have to be compared with the request's host.
    """
    if not address.startswith("/") or not _is_bounded(address):
        return ""
    if not url_has_allowed_host_and_scheme(address, allowed_hosts=None):
        return ""
    return address


def _is_bounded(address: str) -> bool:
    # In bytes, because it must fit into a cookie. Half a surrogate pair has none.
    return address.isprintable() and len(address.encode()) <= LONGEST_NEXT


def may_lead_to(address: str) -> bool:
    """Whether a front end may name ``address`` as the next page.

    It is a path of this site, or begins with an origin of ``CSRF_TRUSTED_ORIGINS``. An entry with a
    wildcard names no origin.
    """
    if safe_next(address):
        return True
    origins = tuple(
        f"{origin}/" for origin in settings.CSRF_TRUSTED_ORIGINS if "*" not in origin
    )
    if not _is_bounded(address):
        return False
    return f"{address}/".startswith(origins)


def landing_url(next_url: str) -> str:
    """The page after a completed flow: as wanted, as set, or the account page."""
    if next_url:
        return next_url
    # Django's default is no page of most sites.
    if settings.is_overridden("LOGIN_REDIRECT_URL"):  # type: ignore[misc]  # not in the stubs
        return resolve_url(settings.LOGIN_REDIRECT_URL)
    return reverse("identity:account")


def problem_page(request: HttpRequest, error: IdentityError) -> HttpResponse:
    """The page with the error and the next step."""
    restart_url = _restart_url(request, error)
    context = {"restart_url": restart_url}
    if error.recovery == Recovery.SIGN_IN_TO_LINK:
        own = local_sign_in_url(coming_back_to=restart_url)
        context["local_sign_in_url"] = own or ""
    template = "django_identity/error.html"
    return error_page(request, template, error, context)


def _restart_url(request: HttpRequest, error: IdentityError) -> str:
    """Where the person starts again: the same form, the wanted page, or the login page."""
    if error.code == "form_expired":
        return with_next(path_of(request), error.next_url)
    if error.code == "access_denied" and error.next_url:
        return error.next_url
    return address_of("login", next=error.next_url)


def local_sign_in_url(*, coming_back_to: str) -> str | None:
    """The site's own sign-in page, if any. It returns to ``coming_back_to``."""
    own = getattr(settings, "IDENTITY_LOCAL_SIGN_IN_URL", None)
    if not own:
        return None
    return with_next(resolve_url(own), coming_back_to)


def with_next(address: str, next_url: str) -> str:
    """``address`` with the page to which it leads on, if any."""
    if not next_url:
        return address
    separator = "&" if "?" in address else "?"
    return f"{address}{separator}{urlencode({'next': next_url})}"
