"""What is for development and tests alone: the sandbox, its public credentials, fixtures."""

from typing import Any

from django.apps import apps
from django.conf import settings
from django.core.checks import CheckMessage, Error

NOT_FOR_SITES = ("django_identity.sandbox", "django_identity.testing")
# The prefix of the public credentials of ``django_identity.sandbox.sandbox_application``.
SANDBOX_VALUES = "sandbox-local-site"


def check_development_only(**_kwargs: Any) -> list[CheckMessage]:
    """Check that a site does not install the sandbox or the test fixtures (E013)."""
    installed = [config.name for config in apps.get_app_configs()]
    named = {"INSTALLED_APPS": installed, "MIDDLEWARE": settings.MIDDLEWARE}
    return [
        Error(
            f"{setting} has {path!r}, which is for development and tests: it opens the site.",
            hint="Remove it. The sandbox is a separate process: python -m django_identity.sandbox",
            id="django_identity.E013",
        )
        for setting, paths in named.items()
        for path in paths
        if f"{path}.".startswith(tuple(f"{package}." for package in NOT_FOR_SITES))
    ]


def check_sandbox_application(**_kwargs: Any) -> list[CheckMessage]:
    """Refuse the sandbox's public credentials beside a live application (E018)."""
    is_live = any(each.get("ENVIRONMENT") == "live" for each in _given().values())
    return check_deployed_sandbox_application() if is_live else []


def check_deployed_sandbox_application(**_kwargs: Any) -> list[CheckMessage]:
    """Refuse them, and the sandbox's webhook secret, on every deployed site (``--deploy``)."""
    found: list[CheckMessage] = []
    for alias, given in _given().items():
        secrets = given.get("WEBHOOK_SECRETS")
        values = [given.get("CLIENT_ID"), given.get("CLIENT_SECRET")]
        values += secrets if isinstance(secrets, list | tuple) else []
        if any(isinstance(each, str) and each.startswith(SANDBOX_VALUES) for each in values):
            found.append(
                Error(
                    f"The application {alias!r} has the credentials of sandbox_application(), "
                    "which are public: anybody could sign an event for this site.",
                    hint="Use them only on a development machine. Register other sites.",
                    id="django_identity.E018",
                )
            )
    return found


def _given() -> dict[str, dict[str, Any]]:
    """The applications in the setting, valid or not."""
    given = getattr(settings, "DJANGO_IDENTITY", None)
    applications = given.items() if isinstance(given, dict) else ()
    return {str(alias): each for alias, each in applications if isinstance(each, dict)}
