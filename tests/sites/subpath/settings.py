"""Below a path, behind a proxy that ends TLS and takes the path away; async views under uvicorn."""

from tests.sites.plain.settings import *  # noqa: F403

ROOT_URLCONF = "tests.sites.subpath.urls"
ALLOWED_HOSTS = ["shop.example", "127.0.0.1"]
# Without it, people land on the account page.
del LOGIN_REDIRECT_URL  # noqa: F821
FORCE_SCRIPT_NAME = "/portal"
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = True
SESSION_COOKIE_PATH = CSRF_COOKIE_PATH = "/portal/"
