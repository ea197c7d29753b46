"""What one credential proves, as the site would verify it."""

from typing import Any

from django_identity.conf import Application
from django_identity.credentials import KeySet
from django_identity.lifecycle.said.key_sets import verify_credential


def facts_of(
    credential: str,
    application: Application,
    *,
    subject: str | None = None,
    keys: KeySet | None = None,
) -> dict[str, Any]:
    """What it proves, for JSON. Raises ``CredentialRejected``.

    Without ``keys`` the service is asked for them.
    """
    proven = verify_credential(application, credential, subject=subject, keys=keys)
    return {
        "subject": proven.subject,
        "environment": proven.environment,
        "key": proven.kid,
        "issued": proven.issued_at and proven.issued_at.isoformat(),
        "expires": proven.expires_at.isoformat(),
        "claims": proven.claims_as_json(),
    }
