"""Sessions, addresses, hosts, and the headers of pages."""

from collections.abc import Iterator

from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning
from django.shortcuts import resolve_url
from django.urls import NoReverseMatch, reverse

from django_identity import conf, policy
from django_identity.backends import BACKEND_PATH, IdentityBackend, served_by
from django_identity.conf.rules import origin_of
from django_identity.exceptions import ConfigurationError
from django_identity.views.content_policy import blocks_button

PROXY_SETTINGS = ("SECURE_PROXY_SSL_HEADER", "USE_X_FORWARDED_HOST", "USE_X_FORWARDED_PORT")
MODEL_BACKEND = "django.contrib.auth.backends.ModelBackend"


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
    # Without the proxy's header all people share one address, and one limit of Connect codes.
    proxied = [setting for setting in PROXY_SETTINGS if getattr(settings, setting)]
    if proxied and not _reads_addresses(application):
        yield Warning(
            f"{proxied[0]} says that the site is behind a proxy, but people's addresses are not "
            "read from the proxy's header: one person's wrong Connect codes lock everybody out.",
            hint=f"Write client_address() in the policy of the application {application.alias!r}.",
            id="django_identity.W004",
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
    sharing = [alias for alias, _ in served_by(IdentityBackend)]
    if len(sharing) > 1:
        yield Error(
            f"The applications {', '.join(sharing)} share IdentityBackend: a session would not "
            "always end with the consent with which it began.",
            hint="Add a subclass with its own `application` to AUTHENTICATION_BACKENDS for each "
            "further application.",
            id="django_identity.E020",
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
    if not hasattr(settings, "IDENTITY_LOCAL_SIGN_IN_URL") and _has_passwords_behind_our_page():
        yield Warning(
            "People can have passwords here, and LOGIN_URL is the identity login page: it would "
            "not say where they sign in with a password.",
            hint="Set IDENTITY_LOCAL_SIGN_IN_URL to the site's own sign-in page, or to None if "
            "nobody has a password.",
            id="django_identity.W029",
        )
    given = getattr(settings, "IDENTITY_LOCAL_SIGN_IN_URL", None)
    if given is None:
        return
    try:
        is_usable = bool(str(given).strip()) and bool(resolve_url(given))
    except NoReverseMatch:
        is_usable = False
    if not is_usable:
        yield Error(
            "IDENTITY_LOCAL_SIGN_IN_URL is neither an address nor a URL name.",
            hint="Set it to the site's own sign-in page, or to None if there is no such page.",
            id="django_identity.E012",
        )


def _has_passwords_behind_our_page() -> bool:
    try:
        is_ours = resolve_url(settings.LOGIN_URL) == resolve_url("identity:login")
    except NoReverseMatch:
        return False
    return is_ours and MODEL_BACKEND in settings.AUTHENTICATION_BACKENDS


def _reads_addresses(application: conf.Application) -> bool:
    """Whether the site's policy has its own ``client_address``; E010 reports a broken policy."""
    try:
        own = type(policy.load(application.policy))
    except ConfigurationError:
        return True
    return own.client_address is not policy.IdentityPolicy.client_address
