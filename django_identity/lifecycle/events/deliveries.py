"""Count what a delivery leaves no row of: a refusal, and which webhook secret signed it."""

from collections.abc import Iterator
from functools import cache

from django.conf import settings
from django.utils.crypto import salted_hmac

from django_identity.conf import Application
from django_identity.lifecycle.events import tallies

SALT = "django_identity.webhook_secret"


def count_signed(application: Application, secret: str) -> None:
    """Count a delivery that ``secret`` signed, if there are several secrets."""
    if len(application.webhook_secrets) > 1:
        tallies.collect(next(secret_names(secret)), application=application)


def secret_names(secret: str) -> Iterator[str]:
    """The name of ``secret`` in the tallies, under the site's current key, then its older keys."""
    for key in (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS):
        yield _secret_name(secret, str(key))


@cache
def _secret_name(secret: str, key: str) -> str:
    return f"secret.{salted_hmac(SALT, secret, secret=key, algorithm='sha256').hexdigest()[:8]}"
