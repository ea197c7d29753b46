"""The identity verification service, played locally: a Django project of its own.

``identity-sandbox`` serves it; nothing else of ``django_identity`` imports it and it imports
nothing else of ``django_identity``, so it is a second, independent reading of the specification.

===================  ==========================================================================
file or folder       part of the specification
===================  ==========================================================================
``models``           Resources and their fields
``oauth``            Authentication; Endpoints: GET /oauth2/auth, POST /oauth2/token
``people``           Endpoints: GET /users/:userId/…; Limits: test numbers; a person's pages
``claims``           Resources: Claim; States: Claim
``credentials``      Resources: Credential; POST /claims/verify
``keys``             Endpoints: GET /.well-known/jwks.json
``documents``        Scopes: documents of the trusted tier
``connect``          Resources: Connect code, redemption result; POST /connect/request
``consents``         States: Consent; what a person is told
``events``           Events; Webhook signature
``developer``        Endpoints: the developer endpoints; the page of applications
===================  ==========================================================================

Beside them ``control`` (the control API under /sandbox/), ``console`` (the developer's start page),
``clock``, ``switches``, ``faults``, ``request_log`` and ``server`` are the sandbox's own. Rules
stand in the parts; pages, endpoints, the console and the control API call them.

This module is light to import, for a site's settings: it needs neither Django nor the extra.
"""

from typing import Any

__all__ = ["sandbox_application"]

SITES = ("http://127.0.0.1:8000", "http://localhost:8000")
SANDBOX = "http://127.0.0.1:9400"
# Public knowledge: the package's check keeps them out of live.
CLIENT_ID = "sandbox-local-site"
CLIENT_SECRET = "sandbox-local-site-client-secret"
WEBHOOK_SECRET = "sandbox-local-site-webhook-secret"
_READ = "/users/{subject}/documents"
DOCUMENT_PATHS = {"documents:read": _READ, "documents:metadata": _READ + "/metadata"}
CALLBACK_PATH = "/identity/callback/"
WEBHOOK_PATH = "/identity/webhook/"


def sandbox_application(sandbox: str = SANDBOX) -> dict[str, Any]:
    """Return the settings of a development site that uses a sandbox on the same machine.

    ``DJANGO_IDENTITY = sandbox_application()`` is the whole configuration of a site
    that serves ``django_identity.urls`` under ``/identity/`` at http://127.0.0.1:8000 or
    http://localhost:8000. Start the sandbox with ``--site`` for another address.

    Args:
        sandbox: the origin that the sandbox prints when it starts.
    """
    sandbox = sandbox.rstrip("/")
    return {
        "ENVIRONMENT": "test",
        "BASE_URL": f"{sandbox}/api/v1",
        "AUTH_URL": sandbox,
        "CLIENT_ID": CLIENT_ID,
        "CLIENT_SECRET": CLIENT_SECRET,
        "WEBHOOK_SECRETS": [WEBHOOK_SECRET],
        "SERVICE_NAME": "Sandbox Identity",
        "SERVICE_ACCOUNT_URL": f"{sandbox}/account/",
        "DOCUMENT_PATHS": DOCUMENT_PATHS,
    }
