"""What one application needs: secrets, addresses, its policy, and what an erasure leaves."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from importlib.util import find_spec
from inspect import Parameter, Signature, iscoroutinefunction, signature
from urllib.parse import urlsplit

from django.conf import settings
from django.contrib.auth import get_user_model
from django.shortcuts import resolve_url
from django.urls import NoReverseMatch

from django_identity import anonymisation, policy
from django_identity.checks import histories, sign_ups
from django_identity.conf import Application
from django_identity.conf.rules import ADDRESSES, Problem, Problems, is_loopback
from django_identity.exceptions import ConfigurationError
from django_identity.policy import IdentityPolicy

OF_AUTH_URL = ("/oauth2", "/oauth2/auth", "/oauth2/token")
PAGES = ("help_url", "privacy_url", "contact_url", "set_password_url")


def problems_of(application: Application) -> Problems:
    yield from _secrets(application)
    yield from _addresses(application)
    try:
        site = policy.load(application.policy)
    except ConfigurationError as error:
        yield Problem("E010", str(error), "POLICY is the dotted path of a class.")
        return
    yield from _signatures(site, application)
    for mistake in _attributes(site):
        yield Problem(
            "E078",
            f"POLICY {application.policy!r}: {mistake}.",
            "Write it as the page on the policy says.",
        )

    where = f"in the policy of the application {application.alias!r}."
    # What the package's own methods do not do. A site's own method is for the site to test.
    if type(site).new_user_fields is IdentityPolicy.new_user_fields:
        yield from sign_ups.problems_of(site, application)
    if type(site).erase_user.__module__.startswith("django_identity."):
        yield from _left(site, where)


def _secrets(application: Application) -> Problems:
    alias = application.alias
    is_live = application.environment == "live"
    if application.document_keys and find_spec("joserfc") is None:
        yield Problem(
            "E067",
            f"The application {alias!r} has DOCUMENT_KEYS, and joserfc is missing.",
            'Install the extra: pip install "django-identity[trusted]"',
        )

    if not application.webhook_secrets:
        yield Problem(
            "W025",
            f"The application {alias!r} has no WEBHOOK_SECRETS: its webhook refuses every event, "
            "and a revocation is seen only when the credential runs out.",
            "Register the webhook at the service, and set the secret that it shows.",
        )

    if is_live and settings.DEBUG:
        yield Problem(
            "E038",
            f"DEBUG is on, and the application {alias!r} is live: error pages would show people's "
            "data.",
            "Set DEBUG = False, or use the application's test credentials.",
        )

    if is_live and application.encryption_keys[0].reveal() == settings.SECRET_KEY:
        yield Problem(
            "W026",
            f"The application {alias!r} is live without ENCRYPTION_KEYS: tokens are encrypted "
            "with SECRET_KEY, and are lost when it changes.",
            "Set ENCRYPTION_KEYS to a list with a random text of its own.",
        )


def _addresses(application: Application) -> Problems:
    alias = application.alias
    for ending in OF_AUTH_URL:
        if application.auth_url.endswith(ending):
            yield Problem(
                "E037",
                f"AUTH_URL of the application {alias!r} ends in {ending}. The package adds "
                "/oauth2/auth and /oauth2/token itself.",
                f"Set AUTH_URL = {application.auth_url.removesuffix(ending)!r}.",
            )

    for name in ADDRESSES:
        parts = urlsplit(getattr(application, name.lower()) or "")
        if parts.scheme == "http" and not is_loopback(parts.hostname):
            yield Problem(
                "W004",
                f"{name} of the application {alias!r} is plain http to another machine: secrets "
                "and tokens travel unencrypted.",
                "Use https, unless nobody else can read that network.",
            )

    # Other people may own hosts of a wildcard domain.
    is_open = any(
        host == "*" or host.startswith(".") for host in settings.ALLOWED_HOSTS
    )
    if is_open and application.redirect_uri is None:
        yield Problem(
            "W001",
            "ALLOWED_HOSTS has a wildcard, and the callback address is built from the request's "
            "host.",
            f"Set REDIRECT_URI of the application {alias!r}.",
        )


def _signatures(site: IdentityPolicy, application: Application) -> Problems:
    """Methods that cannot be called as this version of the package calls them."""
    for name, method in vars(IdentityPolicy).items():
        if name.startswith("_") or not callable(method):
            continue
        own = getattr(site, name)
        wanted = _without_types(signature(method))
        where = f"{name}() of POLICY {application.policy!r}"
        hint = f"Write it as: def {name}{wanted}: ..."
        if iscoroutinefunction(own):
            # The coroutine itself would count as yes.
            yield Problem(
                "E069", f"{where} is async: nobody would wait for its answer.", hint
            )
        elif not _takes(own, wanted):
            yield Problem(
                "E069", f"{where} does not take what it is called with.", hint
            )


def _attributes(site: IdentityPolicy) -> Iterator[str]:
    """Attributes with which a page would fail, or of which the opposite would be done."""
    if site.erasure not in ("anonymise", "delete"):
        yield f'erasure is {site.erasure!r}, and neither "anonymise" nor "delete"'
    if not isinstance(site.reasons, Mapping):
        yield "reasons is not a dict"
    for name in ("people_may_erase", "audit_erasures"):
        if not isinstance(getattr(site, name), bool):
            yield f"{name} is neither True nor False"
    for name in PAGES:
        try:
            resolve_url(getattr(site, name) or "/")
        except NoReverseMatch:
            yield f"{name} is neither an address nor a URL name"


def _without_types(wanted: Signature) -> Signature:
    named = wanted.parameters.values()
    return Signature(
        [parameter.replace(annotation=Parameter.empty) for parameter in named]
    )


def _takes(own: Callable[..., object], wanted: Signature) -> bool:
    """Whether ``own``, a bound method, can be called with the arguments of ``wanted``."""
    taken = [*wanted.parameters.values()][1:]
    positional = [one.name for one in taken if one.kind is one.POSITIONAL_OR_KEYWORD]
    named = {one.name: one for one in taken if one.kind is one.KEYWORD_ONLY}
    try:
        signature(own).bind(*positional, **named)
    except TypeError:
        return False
    return True


def _left(site: IdentityPolicy, where: str) -> Problems:
    """What an erasure leaves: fields of the user, and former versions."""
    model = get_user_model()
    names: list[str] = []
    if site.erasure == "anonymise":
        names = anonymisation.cannot_blank(model)
    if names:
        yield Problem(
            "W032",
            f"An erasure leaves these fields of {model._meta.label} as they are: "
            f"{', '.join(names)}.",
            "If they say something about the person, let them be empty (null=True), or empty them "
            f"in erase_user() {where}",
        )

    keepers = histories.keepers_of(model)
    if keepers:
        yield Problem(
            "W033",
            "These can keep former versions of any row, and an erasure leaves those of "
            f"{model._meta.label}: {', '.join(keepers)}.",
            f"Delete them in erase_user() {where} If they have none of accounts, silence W033.",
        )
