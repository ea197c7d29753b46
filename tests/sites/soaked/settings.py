"""The site of the benchmark ``soak``: as in production, with a broker and a shared cache."""

from __future__ import annotations

import os

import dj_database_url

from django_identity.schedule import beat_schedule
from tests.sites.plain.settings import *  # noqa: F403
from tests.sites.plain.settings import APPLICATION

DATABASES = {
    "default": dj_database_url.parse(
        os.environ["DATABASE_URL"], conn_max_age=60, conn_health_checks=True
    )
}
CACHES = {
    "default": {
        "BACKEND": "django.core.cache.backends.redis.RedisCache",
        "LOCATION": os.environ["CELERY_BROKER_URL"],
        "KEY_PREFIX": os.environ["SOAK_NAME"],
    }
}
DJANGO_IDENTITY = {"default": APPLICATION}
CELERY_BEAT_SCHEDULE = beat_schedule(every=5.0)
# One line is an error of the benchmark.
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"plain": {"format": "{levelname} {name} {message}", "style": "{"}},
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "plain"}},
    "root": {"handlers": ["console"], "level": "WARNING"},
}
