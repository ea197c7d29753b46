"""Production settings, the same for each site. ``PEER`` names the site, a module of ``sites``."""

from __future__ import annotations

import os
from importlib import import_module

import dj_database_url

PEER = os.environ["PEER"]
_site = import_module(f"tests.benchmarks.peers.sites.{PEER}")

DEBUG = False
SECRET_KEY = "a key for benchmarks alone, of no use anywhere else"
ALLOWED_HOSTS = ["shop.example"]
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = True
USE_TZ = True
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
ROOT_URLCONF = f"tests.benchmarks.peers.sites.{PEER}_urls"
LOGIN_REDIRECT_URL = "/who/"
EMAIL_BACKEND = "django.core.mail.backends.dummy.EmailBackend"
LOGGING_CONFIG = None
STATIC_URL = "static/"

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    *_site.APPS,
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    *_site.MIDDLEWARE,
]
AUTHENTICATION_BACKENDS = ["django.contrib.auth.backends.ModelBackend", *_site.BACKENDS]
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]
DATABASES = {
    "default": dj_database_url.parse(
        os.environ.get("DATABASE_URL", "sqlite:///peers.sqlite3"), conn_max_age=600
    )
}
DATABASES["default"]["TEST"] = {"NAME": f"peers_{PEER}"}
if DATABASES["default"]["ENGINE"].endswith("sqlite3"):
    DATABASES["default"]["TEST"]["NAME"] += ".sqlite3"

globals().update(_site.settings(os.environ.get("SERVICE", "http://127.0.0.1:1")))
