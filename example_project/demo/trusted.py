"""Makes the demo's application trusted: its key, and the settings for it."""

from __future__ import annotations

import json

import httpx
from joserfc.jwk import ECKey

SCOPE = "documents:read"


def approve(sandbox: httpx.Client, app_id: str) -> dict[str, str]:
    """Register a new key at ``sandbox``. Returns the environment of the site's processes."""
    key = ECKey.generate_key(
        "P-256",
        {"kid": "demo", "alg": "ECDH-ES+A256KW", "use": "enc"},
        private=True,
    )
    path, public = f"applications/{app_id}/trusted-tier", key.as_dict(private=False)
    sandbox.post(path, json={"document_key": public}).raise_for_status()
    private = json.dumps([key.as_dict(private=True)])
    return {"IDENTITY_LATER_SCOPES": SCOPE, "IDENTITY_DOCUMENT_KEYS": private}
