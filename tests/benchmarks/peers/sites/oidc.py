"""mozilla-django-oidc with PKCE. An ID token is checked, and people are found by e-mail address."""

from __future__ import annotations

from tests.benchmarks.peers.person import CLIENT_ID, CLIENT_SECRET

APPS = ["mozilla_django_oidc"]
MIDDLEWARE: list[str] = []
BACKENDS = ["mozilla_django_oidc.auth.OIDCAuthenticationBackend"]
START, BY_FORM = "/oidc/authenticate/", False


def settings(service: str) -> dict[str, object]:
    return {
        "OIDC_RP_CLIENT_ID": CLIENT_ID,
        "OIDC_RP_CLIENT_SECRET": CLIENT_SECRET,
        "OIDC_OP_AUTHORIZATION_ENDPOINT": f"{service}/oauth2/auth",
        "OIDC_OP_TOKEN_ENDPOINT": f"{service}/oauth2/token",
        "OIDC_OP_USER_ENDPOINT": f"{service}/userinfo",
        "OIDC_USE_PKCE": True,
    }
