"""The small shop. ``$SITE_BREAKS``: the promises that it breaks, with commas between them."""

import os
from pathlib import Path

from tests.sites.plain.settings import *  # noqa: F403  it is the plain site but for what follows
from tests.sites.plain.settings import (
    APPLICATION,
    DATABASES,
    FOLDER,
    INSTALLED_APPS,
    MIDDLEWARE,
    TEMPLATES,
    database,
)

SITE_BREAKS = frozenset(os.environ.get("SITE_BREAKS", "").split(","))
ROOT_URLCONF = "tests.sites.drilled.urls"
INSTALLED_APPS = [*INSTALLED_APPS, "tests.sites.drilled"]
INSTALLED_APPS.remove("django.contrib.admin")
DATABASES["default"]["ENGINE"] = "tests.sites.drilled.engine"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
LOGIN_REDIRECT_URL = "home"
IDENTITY_LOCAL_SIGN_IN_URL = None
if "scopeless" in SITE_BREAKS:
    APPLICATION = {**APPLICATION, "SCOPES": ["profile:read"]}
APPLICATION = {**APPLICATION, "POLICY": "tests.sites.drilled.broken.ShopPolicy"}
DJANGO_IDENTITY = APPLICATION
if "user" in SITE_BREAKS:
    MIDDLEWARE = [*MIDDLEWARE, "tests.sites.drilled.broken.replaced_user"]
if SITE_BREAKS & {"login", "webhook"}:
    MIDDLEWARE = ["tests.sites.drilled.broken.no_posts", *MIDDLEWARE]
if "session" in SITE_BREAKS:
    SESSION_ENGINE = "tests.sites.drilled.broken"
if "languages" in SITE_BREAKS:
    LANGUAGE_CODE = "en-us"
    LANGUAGES = [("en", "English"), ("fr", "French")]
    # Behind the session, as Django wants it.
    MIDDLEWARE = [
        *MIDDLEWARE[:2],
        "django.middleware.locale.LocaleMiddleware",
        *MIDDLEWARE[2:],
    ]
if "replica" in SITE_BREAKS:
    DATABASES["replica"] = {**DATABASES["default"], "TEST": {"MIRROR": "default"}}
    DATABASES["again"] = dict(DATABASES["default"])
    DATABASE_ROUTERS = ["tests.sites.drilled.engine.ReplicaRouter"]
if "raising" in SITE_BREAKS:
    # It silences Django's own logs.
    LOGGING = {"version": 1}
if "rendered" in SITE_BREAKS:
    TEMPLATES[0]["DIRS"] = [Path(__file__).parent / "spoilt"]
if "live" in SITE_BREAKS:
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
if "unfilled" in SITE_BREAKS:
    INSTALLED_APPS = [*INSTALLED_APPS, "tests.sites.custom_user"]
    AUTH_USER_MODEL = "custom_user.User"
CELERY_BROKER_URL = os.environ.get("SITE_BROKER", "")
CELERY_TASK_PUBLISH_RETRY = False
