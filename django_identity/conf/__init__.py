"""The setting ``DJANGO_IDENTITY``, read at first use and parsed once into frozen values.

All other code calls ``application("default")``. ``problems()`` lists all mistakes for the system
checks; ``application()`` raises the fatal ones.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any

from django.conf import settings
from django.core.signals import setting_changed

from django_identity.conf import rules
from django_identity.conf.rules import SETTING, Problem
from django_identity.conf.rules import Application as Application
from django_identity.exceptions import ConfigurationError
from django_identity.secrets import Secret

DEFAULT_ALIAS = "default"


def application(alias: str = DEFAULT_ALIAS) -> Application:
    """The application with this alias.

    Raises ``ConfigurationError`` if the alias is unknown or its settings are unusable.
    """
    return _application(alias)


def is_usable() -> bool:
    """Whether the setting has no fatal mistake."""
    return not any(problem.fatal for problem in problems())


def applications() -> tuple[Application, ...]:
    """All applications, in the order of the setting. Raises like ``application``."""
    return tuple(map(application, aliases()))


def aliases() -> tuple[str, ...]:
    return tuple(_setting())


@cache
def problems() -> tuple[Problem, ...]:
    """All mistakes in the setting, in the order of the aliases."""
    raw = _setting()
    if DEFAULT_ALIAS not in raw:
        hint = 'Add DJANGO_IDENTITY = {"default": {…}} to the settings; see the README.'
        return (
            Problem("E001", f'{SETTING} must be a dict with the key "default".', hint),
        )
    found = list(rules.naming_problems(raw))
    for alias, entry in raw.items():
        found += rules.alias_problems(alias, entry)
    return tuple(found)


def _setting() -> Mapping[str, Any]:
    """The setting, or an empty one if it is no dict."""
    setting = getattr(settings, SETTING, None)
    if not isinstance(setting, Mapping):
        return {}
    return setting


@cache
def _application(alias: str) -> Application:
    if not is_usable():
        raise ConfigurationError(
            " ".join(problem.message for problem in problems() if problem.fatal)
        )
    if alias not in aliases():
        raise ConfigurationError(f"{SETTING} has no application {alias!r}.")
    parsed = rules.parse(alias, _setting()[alias])
    if parsed.encryption_keys:
        return parsed
    keys = settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS
    return replace(parsed, encryption_keys=tuple(Secret(str(key)) for key in keys))


def _forget(*, setting: str, **_kwargs: object) -> None:
    if setting in (SETTING, "SECRET_KEY", "SECRET_KEY_FALLBACKS"):
        problems.cache_clear()
        _application.cache_clear()


setting_changed.connect(_forget, dispatch_uid="django_identity.conf")
