"""The setting ``DJANGO_IDENTITY``, read at first use and parsed once into frozen values.

All other code calls ``application()``. ``problems()`` lists all mistakes for the system checks;
``application()`` raises the fatal ones.
"""

from dataclasses import replace
from functools import cache

from django.conf import settings
from django.core.signals import setting_changed

from django_identity.conf import rules
from django_identity.conf.rules import SETTING, Problem
from django_identity.conf.rules import Application as Application
from django_identity.exceptions import ConfigurationError
from django_identity.secrets import Secret


@cache
def application() -> Application:
    """The site's registration. Raises ``ConfigurationError`` if its settings are unusable."""
    if not is_usable():
        raise ConfigurationError(
            " ".join(problem.message for problem in problems() if problem.fatal),
        )
    parsed = rules.parse(getattr(settings, SETTING))
    if parsed.encryption_keys:
        return parsed
    keys = settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS
    return replace(parsed, encryption_keys=tuple(Secret(str(key)) for key in keys))


def is_usable() -> bool:
    """Whether the setting is free of fatal mistakes."""
    return not any(problem.fatal for problem in problems())


@cache
def problems() -> tuple[Problem, ...]:
    """All mistakes in the setting."""
    return tuple(rules.problems(getattr(settings, SETTING, None)))


def _forget(*, setting: str, **_kwargs: object) -> None:
    if setting in (SETTING, "SECRET_KEY", "SECRET_KEY_FALLBACKS"):
        problems.cache_clear()
        application.cache_clear()


setting_changed.connect(_forget, dispatch_uid="django_identity.conf")
