"""System checks, each with an id. ``docs/logs.md`` lists them.

``conf.problems``: the keys of ``DJANGO_IDENTITY`` · ``registration``: its other needs ·
``sign_ups``: demands of the user model · ``erasures``: what is left of a person ·
``content_policies``: the way to the service · ``site``:
needs of the site · ``gates``: their requirements
"""

import traceback
from collections.abc import Callable, Collection, Iterable
from functools import partial
from typing import Any, TypeAlias

from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, Warning, register

from django_identity import conf, database
from django_identity.checks import content_policies, erasures, gates, registration, site
from django_identity.conf.rules import Problem

Check: TypeAlias = Callable[[], Iterable[Problem]]


def check_settings(**_kwargs: Any) -> list[CheckMessage]:
    """Check ``DJANGO_IDENTITY`` itself."""
    return _messages(conf.problems, site.development_problems)


def check_installation(**_kwargs: Any) -> list[CheckMessage]:
    """Check what the package depends on, once the setting can be used."""
    if not conf.is_usable():
        return []
    # Settings of a worker alone may have none, and every address is asked for there.
    if not getattr(settings, "ROOT_URLCONF", None):
        return _messages(lambda: [site.NO_PAGES])
    application = conf.application()
    return _messages(
        site.problems,
        partial(registration.problems_of, application),
        partial(content_policies.problems_of, application),
        gates.problems,
        erasures.problems,
    )


def check_deployment(**_kwargs: Any) -> list[CheckMessage]:
    """Check what is wrong on a deployed site alone (``check --deploy``)."""
    if not conf.is_usable():
        return []
    return _messages(site.sandbox_problems)


def check_database(
    *,
    databases: Collection[str] | None,
    **_kwargs: Any,
) -> list[CheckMessage]:
    """Check the database itself (``migrate``, ``check --database``, ``identity_doctor``)."""
    if database.alias() not in (databases or ()):
        return []
    return _messages(site.database_problems)


def register_all() -> None:
    """Register every check, once the models are loaded."""
    register(check_settings, Tags.security)
    register(check_installation, Tags.security)
    register(check_deployment, Tags.security, deploy=True)
    register(check_database, Tags.database)


def _messages(*checks: Check) -> list[CheckMessage]:
    """What the checks find. An error of the site's code ends only its own check."""
    messages: list[CheckMessage] = []
    for check in checks:
        try:
            for problem in check():
                messages.append(_message(problem))
        except Exception as error:  # noqa: BLE001  the site's own code may raise anything
            messages.append(_message(_unfinished(error)))
    return messages


def _unfinished(error: Exception) -> Problem:
    *_callers, last = traceback.extract_tb(error.__traceback__)
    return Problem(
        "E079",
        f"A check of this package cannot be finished: {type(error).__name__}: {error}.",
        f"It was raised in {last.filename}, line {last.lineno}.",
    )


def _message(problem: Problem) -> CheckMessage:
    severity = Error if problem.check_id.startswith("E") else Warning
    check_id = f"django_identity.{problem.check_id}"
    return severity(problem.message, hint=problem.hint, id=check_id)
