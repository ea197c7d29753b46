"""The columns of each table that nobody is shown: secrets and internals.

Whoever adds a column decides: ``shown`` in the dossier, or withheld here.
"""

from django.db.models import Model

from django_identity import models

WITHHELD: dict[type[Model], set[str]] = {
    models.LinkedIdentity: {
        "id", "user", "subject_digest",
        "refetch_due_at", "refetch_failures",
        "last_error", "session_epoch", "version",
    },
    models.StoredClaim: {
        "id", "identity", "created_at",
    },
    models.TokenGrant: {
        "id", "identity", "access_token", "refresh_token", "generation", "lease_until",
        "retry_at", "created_at",
    },
    models.WebhookEvent: {
        "id", "application", "event_id", "event_digest", "subject",
        "subject_digest", "handled_at", "handled_by", "attempts",
        "next_attempt_at", "error", "created_at",
    },
    models.AuthorizationRequest: {
        "id", "state_digest", "browser_digest", "application", "environment", "user",
        "completed_by", "code_verifier", "redirect_uri", "scopes", "expires_at",
        "consumed_at",
    },
    models.ConnectRedemption: {
        "id", "code_digest", "application", "user", "expires_at",
    },
}  # fmt: skip
