"""This package, with the profile alone."""

from __future__ import annotations

from tests.benchmarks.peers.person import CLIENT_ID, CLIENT_SECRET

APPS = ["django_identity"]
MIDDLEWARE: list[str] = []
BACKENDS = ["django_identity.backends.IdentityBackend"]
START, BY_FORM = "/identity/login/", True
WEBHOOK = "/identity/webhook/"
WEBHOOK_SECRET = "a-webhook-secret-for-benchmarks-alone"


def settings(service: str) -> dict[str, object]:
    return {
        "DJANGO_IDENTITY": {
            "default": {
                "ENVIRONMENT": "test",
                "BASE_URL": f"{service}/api/v1",
                "AUTH_URL": service,
                "CLIENT_ID": CLIENT_ID,
                "CLIENT_SECRET": CLIENT_SECRET,
                "WEBHOOK_SECRETS": [WEBHOOK_SECRET],
                "SCOPES": ["profile:read"],
                # Counted as in a site, but a benchmark asks faster than people do.
                "STARTS_PER_ADDRESS": 1_000_000,
                "RATE_LIMIT": "10000/s",
            }
        }
    }
