"""System checks, each with an id. ``docs/checks.md`` lists them.

``conf.problems``: the keys of ``DJANGO_IDENTITY`` · ``applications``: what one application needs
besides · ``site``: what all of them need of the site
"""

from collections.abc import Iterable
from typing import Any

from django.core.checks import CheckMessage, Error, Tags, Warning, register

from django_identity import conf
from django_identity.checks import applications, site
from django_identity.conf.rules import Problem


def check_settings(**_kwargs: Any) -> list[CheckMessage]:
    """Check ``DJANGO_IDENTITY`` itself."""
    return _messages([*conf.problems(), *site.development_problems()])


def check_installation(**_kwargs: Any) -> list[CheckMessage]:
    """Check what the package depends on, once the setting can be used."""
    if not conf.is_usable():
        return []
    found = list(site.problems())
    for application in conf.applications():
        found += applications.problems_of(application)
    return _messages(found)


def check_deployment(**_kwargs: Any) -> list[CheckMessage]:
    """Check what a deployed site may not have (``check --deploy``)."""
    if not conf.is_usable():
        return []
    return _messages([*site.sandbox_problems(), *site.environment_problems()])


def register_all() -> None:
    """Register every check, once the models are loaded."""
    register(check_settings, Tags.security)
    register(check_installation, Tags.security)
    register(check_deployment, Tags.security, deploy=True)


def _messages(problems: Iterable[Problem]) -> list[CheckMessage]:
    return [
        (Error if each.check_id.startswith("E") else Warning)(
            each.message, hint=each.hint, id=f"django_identity.{each.check_id}"
        )
        for each in problems
    ]
