"""The site that every sandbox knows, so that a development site needs no registration.

Light to import, for a site's settings: it needs neither Django nor the extra ``[sandbox]``.
"""

from typing import Any

NAME = "Local site"
SITES = ("http://127.0.0.1:8000", "http://localhost:8000")
SANDBOX = "http://127.0.0.1:9400"
# Public knowledge: the package's check keeps them out of live.
CLIENT_ID = "sandbox-local-site"
CLIENT_SECRET = "sandbox-local-site-client-secret"  # noqa: S105 -- for everybody to know
WEBHOOK_SECRET = "sandbox-local-site-webhook-secret"  # noqa: S105 -- for everybody to know
CALLBACK_PATH = "/identity/callback/"
WEBHOOK_PATH = "/identity/webhook/"


def sandbox_application(sandbox: str = SANDBOX) -> dict[str, Any]:
    """Return the settings of a development site that uses a sandbox on the same machine.

    ``DJANGO_IDENTITY = {"default": sandbox_application()}`` is the whole configuration of a site
    that serves ``django_identity.urls`` under ``/identity/`` at http://127.0.0.1:8000 or
    http://localhost:8000. Start the sandbox with ``--site`` for another address.

    Args:
        sandbox: the origin that the sandbox prints when it starts.
    """
    return {
        "ENVIRONMENT": "test",
        "BASE_URL": f"{sandbox}/api/v1",
        "AUTH_URL": sandbox,
        "CLIENT_ID": CLIENT_ID,
        "CLIENT_SECRET": CLIENT_SECRET,
        "WEBHOOK_SECRETS": [WEBHOOK_SECRET],
        "SERVICE_ACCOUNT_URL": f"{sandbox}/account/",
    }
