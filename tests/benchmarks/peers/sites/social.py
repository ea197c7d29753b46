"""social-auth with a backend of the site's own and its default pipeline."""

from __future__ import annotations

from tests.benchmarks.peers.person import CLIENT_ID, CLIENT_SECRET

APPS = ["social_django"]
MIDDLEWARE = ["social_django.middleware.SocialAuthExceptionMiddleware"]
BACKENDS = ["tests.benchmarks.peers.sites.social_backend.IdentityOAuth2"]
START, BY_FORM = "/login/identity/", True


def settings(service: str) -> dict[str, object]:
    return {
        "SOCIAL_AUTH_IDENTITY_ORIGIN": service,
        "SOCIAL_AUTH_IDENTITY_KEY": CLIENT_ID,
        "SOCIAL_AUTH_IDENTITY_SECRET": CLIENT_SECRET,
    }
