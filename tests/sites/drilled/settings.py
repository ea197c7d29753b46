"""The small shop. ``$SITE_BREAKS``: the promise that it breaks, or nothing."""

import os

from tests.sites.plain.settings import *  # noqa: F403  it is the plain site but for what follows
from tests.sites.plain.settings import (
    APPLICATION,
    DATABASES,
    FOLDER,
    INSTALLED_APPS,
    MIDDLEWARE,
    database,
)

SITE_BREAKS = os.environ.get("SITE_BREAKS", "")
ROOT_URLCONF = "tests.sites.drilled.urls"
INSTALLED_APPS = [
    *(app for app in INSTALLED_APPS if app != "django.contrib.admin"),
    "tests.sites.drilled",
]
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
LOGIN_REDIRECT_URL = "home"
IDENTITY_LOCAL_SIGN_IN_URL = None
if SITE_BREAKS == "scopeless":
    APPLICATION = {**APPLICATION, "SCOPES": ["profile:read"]}
APPLICATION = {**APPLICATION, "POLICY": "tests.sites.drilled.policy.ShopPolicy"}
DJANGO_IDENTITY = {"default": APPLICATION}
if SITE_BREAKS == "cached":
    MIDDLEWARE = [
        "django.middleware.cache.UpdateCacheMiddleware",
        "tests.sites.drilled.middleware.quick",
        *MIDDLEWARE,
        "django.middleware.cache.FetchFromCacheMiddleware",
    ]
if SITE_BREAKS == "user":
    MIDDLEWARE = [*MIDDLEWARE, "tests.sites.drilled.middleware.replaced_user"]
if SITE_BREAKS in ("login", "webhook"):
    MIDDLEWARE = ["tests.sites.drilled.middleware.no_posts", *MIDDLEWARE]
if SITE_BREAKS == "session":
    SESSION_ENGINE = "tests.sites.drilled.sessions"
ENGINES = {"database": "unmade", "pooled": "pooled", "kept": "kept"}
if SITE_BREAKS in ENGINES:
    DATABASES["default"]["ENGINE"] = f"tests.sites.drilled.{ENGINES[SITE_BREAKS]}"
if SITE_BREAKS == "live":
    from tests.sites.drilled import broker as broker

    LIVE = f"{FOLDER}/live"
    DATABASES["books"] = database("books")
    SESSION_ENGINE = "django.contrib.sessions.backends.file"
    SESSION_FILE_PATH = LIVE
    MEDIA_ROOT = LIVE
    LIVE_CACHE = "django.core.cache.backends.filebased.FileBasedCache"
    CACHES = {
        "default": {"BACKEND": LIVE_CACHE, "LOCATION": LIVE},
        "live": {"BACKEND": LIVE_CACHE, "LOCATION": LIVE},
    }
    LIVE_FILES = "django.core.files.storage.FileSystemStorage"
    STORAGES = {
        "default": {"BACKEND": LIVE_FILES},
        "live": {"BACKEND": LIVE_FILES, "OPTIONS": {"location": LIVE}},
        "staticfiles": {"BACKEND": LIVE_FILES},
    }
if SITE_BREAKS == "unfilled":
    INSTALLED_APPS = [*INSTALLED_APPS, "tests.sites.custom_user"]
    AUTH_USER_MODEL = "custom_user.User"
CELERY_BROKER_URL = os.environ.get("SITE_BROKER", "")
CELERY_TASK_PUBLISH_RETRY = False
