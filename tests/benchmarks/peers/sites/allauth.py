"""django-allauth with a provider of the site's own (docs: "Custom Providers")."""

from __future__ import annotations

from tests.benchmarks.peers.person import CLIENT_ID, CLIENT_SECRET

APPS = [
    "allauth",
    "allauth.account",
    "allauth.socialaccount",
    "tests.benchmarks.peers.sites.allauth_provider",
]
MIDDLEWARE = ["allauth.account.middleware.AccountMiddleware"]
BACKENDS = ["allauth.account.auth_backends.AuthenticationBackend"]
START, BY_FORM = "/accounts/identity/login/", True


def settings(service: str) -> dict[str, object]:
    app = {"client_id": CLIENT_ID, "secret": CLIENT_SECRET, "key": ""}
    provider = {"APP": app, "SCOPE": ["profile:read"], "OAUTH_PKCE_ENABLED": True}
    return {"SOCIALACCOUNT_PROVIDERS": {"identity": provider}, "SERVICE": service}
