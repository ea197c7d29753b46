"""What the registration needs of the site: addresses, sessions, cookies, databases and caches."""

from django.apps import apps
from django.conf import settings
from django.contrib.auth import get_user_model
from django.db import connections, router
from django.shortcuts import resolve_url
from django.urls import NoReverseMatch, reverse
from django.utils import translation

from django_identity import conf, database
from django_identity.backends import BACKEND_PATH
from django_identity.checks import charset
from django_identity.conf.rules import Problem, Problems
from django_identity.service.http import environment_problem

NOT_FOR_SITES = ("django_identity.sandbox.", "django_identity.testing.")
# The prefix of the public credentials of ``django_identity.sandbox.sandbox_application``.
SANDBOX_VALUES = "sandbox-local-site"


def development_problems() -> Problems:
    """The sandbox and the fixtures are for development and tests alone."""
    installed = [config.name for config in apps.get_app_configs()]
    for setting, paths in (
        ("INSTALLED_APPS", installed),
        ("MIDDLEWARE", settings.MIDDLEWARE),
    ):
        for path in paths:
            if f"{path}.".startswith(NOT_FOR_SITES):
                yield Problem(
                    "E013",
                    f"{setting} has {path!r}, which is for development and tests: it opens the "
                    "site.",
                    "Remove it. The sandbox is a process: python -m django_identity.sandbox",
                )


def sandbox_problems() -> Problems:
    """The public credentials of the sandbox, for a deployed or a live site."""
    application = conf.application()
    secrets = (application.client_secret, *application.webhook_secrets)
    values = (application.client_id, *(secret.reveal() for secret in secrets))
    if any(value.startswith(SANDBOX_VALUES) for value in values):
        yield Problem(
            "E018",
            "DJANGO_IDENTITY has the credentials of sandbox_application(), which are public: "
            "anybody could sign an event for this site.",
            "Use them only on a development machine. Any other site has credentials of its "
            "own: docs/settings.md.",
        )


NO_PAGES = Problem(
    "E040",
    "django_identity.urls is not in the ROOT_URLCONF, or below other addresses of the namespace "
    "identity: there is no login page, no callback and no webhook.",
    'Add path("identity/", include("django_identity.urls")), and give yours another namespace.',
)


def problems() -> Problems:
    yield from _pages()
    yield from _databases()
    if _is_kept_by_cacheops() or _is_kept_by_cachalot():
        yield Problem(
            "E077",
            "A cache answers queries of this package in place of the database: gates and sessions "
            "would stay open after a revocation, and locks would hold nothing.",
            'Leave its tables out, and the user model: CACHEOPS = {"django_identity.*": None, '
            f'"{get_user_model()._meta.label_lower}": None, ...}}; for django-cachalot only '
            'CACHALOT_UNCACHABLE_APPS = ["django_identity"].',
        )
    if conf.application().environment == "live":
        yield from sandbox_problems()
        yield from _cookies()

    error = environment_problem()
    if error:
        yield Problem(
            "E014",
            f"The environment's certificate authority or proxy cannot be used ({error}): every "
            "call of the service would fail.",
            "SSL_CERT_FILE is a file of PEM certificates; HTTPS_PROXY has the form "
            "http://[user:password@]host:port.",
        )

    if not settings.USE_TZ:
        yield Problem(
            "E039",
            "USE_TZ is off: the times of claims and revocations could not be compared.",
            "Set USE_TZ = True. Only the TIME_ZONE of pages is a matter of taste.",
        )


def database_problems() -> Problems:
    """What only the database itself can tell."""
    lacking = charset.lacking()
    if lacking:
        yield Problem(
            "E072",
            f"The database {database.alias()!r} stores text in {lacking}, which lacks characters "
            "of people's names: what has one of them cannot be stored.",
            "Convert it: the tables and the connection of MariaDB or MySQL to utf8mb4, a database "
            "of PostgreSQL to the encoding UTF8.",
        )


def _cookies() -> Problems:
    """Browsers also send the cookie over plain http unless it is ``Secure``."""
    for setting in ("SESSION_COOKIE_SECURE", "CSRF_COOKIE_SECURE"):
        if not getattr(settings, setting):
            hint = f"Set {setting} = True, and serve the site only over https."
            yield Problem(
                "E011",
                f"{setting} is not set, and ENVIRONMENT is live.",
                hint,
            )


def _pages() -> Problems:
    if BACKEND_PATH not in settings.AUTHENTICATION_BACKENDS:
        yield Problem(
            "E009",
            "The identity backend is not in AUTHENTICATION_BACKENDS: nobody would stay signed in.",
            f"Add {BACKEND_PATH!r}.",
        )
    try:
        for page in ("login", "callback", "webhook"):
            reverse(f"identity:{page}")
    except NoReverseMatch:
        yield NO_PAGES
    else:
        yield from _languages()
    try:
        resolve_url(getattr(settings, "IDENTITY_LOCAL_SIGN_IN_URL", None) or "/")
    except NoReverseMatch:
        yield Problem(
            "E012",
            "IDENTITY_LOCAL_SIGN_IN_URL is neither an address nor a URL name.",
            "Set it to the site's own sign-in page, or to None if there is no such page.",
        )


def _languages() -> Problems:
    """The service stores one callback and one webhook address for all languages."""
    for page in ("callback", "webhook"):
        addresses = _addresses(page)
        if len(addresses) > 1:
            yield Problem(
                "E070",
                f"The address of the {page} changes with the visitor's language, and the service "
                f"knows one: {', '.join(sorted(addresses)[:2])}.",
                "Include django_identity.urls outside i18n_patterns(), below a path that is not "
                "translated.",
            )


def _addresses(page: str) -> set[str]:
    """The addresses of ``page`` in the languages of the site."""
    languages = [code for code, _name in settings.LANGUAGES]
    # Without a choice of the site's own these are a hundred, and each has to be loaded.
    if not settings.is_overridden("LANGUAGES"):  # type: ignore[misc]  # not in the stubs
        languages = languages[:2]
    found = set()
    for language in languages:
        with translation.override(language):
            found.add(reverse(f"identity:{page}"))
    return found


def _databases() -> Problems:
    """One database has all tables. With SQLite a transaction begins with its lock."""
    for model in (
        get_user_model(),
        *apps.get_app_config("django_identity").get_models(),
    ):
        written_to = router.db_for_write(model)
        if written_to != database.alias():
            yield Problem(
                "E035",
                f"The router writes {model._meta.label} to the database {written_to!r}, and linked "
                f"identities to {database.alias()!r}.",
                "Let DATABASE_ROUTERS send all models of django_identity, and AUTH_USER_MODEL "
                "to which they refer, to one database.",
            )
    if database.alias() not in connections or database.connection().vendor != "sqlite":
        return
    if (
        database.connection().settings_dict["OPTIONS"].get("transaction_mode")
        != "IMMEDIATE"
    ):
        yield Problem(
            "W003",
            "SQLite begins transactions without a lock: of two requests that write at the same "
            "time one may fail.",
            'Set OPTIONS = {"transaction_mode": "IMMEDIATE", "timeout": 20} in DATABASES.',
        )


def _is_kept_by_cacheops() -> bool:
    """Of a model the first profile counts: its own, its app's, that of all."""
    if not getattr(settings, "CACHEOPS_ENABLED", True):
        return False
    stored = getattr(settings, "CACHEOPS", {})
    profiles = {name.lower(): profile for name, profile in stored.items()}
    defaults = getattr(settings, "CACHEOPS_DEFAULTS", {})
    ours = apps.get_app_config("django_identity").get_models()
    # The user of a session is read together with the identity.
    for model in (get_user_model(), *ours):
        names = (model._meta.label_lower, f"{model._meta.app_label.lower()}.*", "*.*")
        found = [profiles[name] for name in names if name in profiles]
        if found and found[0] is not None and (defaults | found[0]).get("ops"):
            return True
    return False


def _is_kept_by_cachalot() -> bool:
    """It keeps the answers about all tables but those of the apps that it is to leave out."""
    is_installed = any(config.label == "cachalot" for config in apps.get_app_configs())
    if not (is_installed and getattr(settings, "CACHALOT_ENABLED", True)):
        return False
    return "django_identity" not in getattr(settings, "CACHALOT_UNCACHABLE_APPS", ())
