"""Test and live side by side. The live service cannot be reached from a test."""

from tests.sites.plain.settings import *  # noqa: F403
from tests.sites.plain.settings import APPLICATION

ROOT_URLCONF = "tests.sites.two_applications.urls"
ALLOWED_HOSTS = ["shop.example", "127.0.0.1"]
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = True
DJANGO_IDENTITY = {
    "default": APPLICATION,
    "live": {
        "ENVIRONMENT": "live",
        "BASE_URL": "https://api.identity.invalid/api/v1",
        "AUTH_URL": "https://login.identity.invalid",
        "CLIENT_ID": "a-live-client",
        "CLIENT_SECRET": "a-client-secret-of-the-live-one",
        "WEBHOOK_SECRETS": ["a-webhook-secret-of-the-live-one"],
        "ENCRYPTION_KEYS": ["an-encryption-key-of-the-live-one"],
    },
}
