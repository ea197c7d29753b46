"""Sessions, addresses, hosts, and the headers of pages."""

from collections.abc import Iterator

from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning
from django.shortcuts import resolve_url
from django.urls import NoReverseMatch, reverse

from django_identity import conf
from django_identity.backends import BACKEND_PATH
from django_identity.conf.rules import origin_of
from django_identity.views.content_policy import blocks_button


def problems() -> Iterator[CheckMessage]:
    yield from _backend_problems()
    yield from _cookie_problems()
    yield from _local_sign_in_problems()
    try:
        reverse("identity:login")
    except NoReverseMatch:
        yield Error(
            "django_identity.urls is not in the ROOT_URLCONF: there is no login page, no callback "
            "and no webhook.",
            hint='Add path("identity/", include("django_identity.urls")).',
            id="django_identity.E040",
        )


def problems_of(application: conf.Application) -> Iterator[CheckMessage]:
    # Other people may own hosts of a wildcard domain.
    is_open = any(host == "*" or host.startswith(".") for host in settings.ALLOWED_HOSTS)
    if is_open and application.redirect_uri is None:
        yield Warning(
            "ALLOWED_HOSTS has a wildcard, and the callback address is built from the request's "
            "host.",
            hint=f"Set REDIRECT_URI of the application {application.alias!r}.",
            id="django_identity.W001",
        )
    if blocks_button(application):
        yield Warning(
            "The Content-Security-Policy has a form-action without the address of the service: "
            "browsers stop the button, whose form ends there.",
            hint=f"Add {origin_of(application.auth_url)!r} to form-action.",
            id="django_identity.W028",
        )


def _backend_problems() -> Iterator[CheckMessage]:
    if BACKEND_PATH not in settings.AUTHENTICATION_BACKENDS:
        yield Error(
            "The identity backend is not in AUTHENTICATION_BACKENDS: nobody would stay signed in.",
            hint=f"Add {BACKEND_PATH!r}.",
            id="django_identity.E009",
        )


def _cookie_problems() -> Iterator[CheckMessage]:
    """Without ``Secure`` a browser also sends the cookie over plain http."""
    if not any(application.environment == "live" for application in conf.applications()):
        return
    for setting in ("SESSION_COOKIE_SECURE", "CSRF_COOKIE_SECURE"):
        if not getattr(settings, setting):
            yield Error(
                f"{setting} is not set, and an application is live.",
                hint=f"Set {setting} = True, and serve the site only over https.",
                id="django_identity.E011",
            )


def _local_sign_in_problems() -> Iterator[CheckMessage]:
    given = getattr(settings, "IDENTITY_LOCAL_SIGN_IN_URL", None)
    try:
        is_usable = given is None or (bool(str(given).strip()) and bool(resolve_url(given)))
    except NoReverseMatch:
        is_usable = False
    if not is_usable:
        yield Error(
            "IDENTITY_LOCAL_SIGN_IN_URL is neither an address nor a URL name.",
            hint="Set it to the site's own sign-in page, or to None if there is no such page.",
            id="django_identity.E012",
        )
