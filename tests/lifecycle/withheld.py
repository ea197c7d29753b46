"""The columns of each table that nobody is shown: secrets and internals.

Whoever adds a column decides: ``shown`` in the dossier, or withheld here.
"""

from __future__ import annotations

from django.db.models import Model

from django_identity import models

WITHHELD: dict[type[Model], set[str]] = {
    models.LinkedIdentity: {
        "id", "user", "subject_digest", "credential", "credential_kid",
        "refetch_due_at", "refetch_taken_until", "refetch_started", "refetch_failures",
        "last_error", "signed_in_at", "revoked_at", "claims_revoked_at",
        "kyc_changed_at", "kyc_rank", "last_event_digest",
    },
    models.FormerLink: {
        "id", "user", "subject_digest", "updated_at",
    },
    models.StoredClaim: {
        "id", "identity", "created_at", "updated_at",
    },
    models.TokenGrant: {
        "id", "identity", "access_token", "refresh_token", "generation", "lease_until",
        "retry_at", "created_at", "updated_at",
    },
    models.DocumentReading: {
        "id", "identity", "read_by", "updated_at",
    },
    models.WebhookEvent: {
        "id", "application", "event_id", "event_digest", "body_digest", "subject",
        "subject_digest", "kept", "handled_at", "handled_by", "attempts",
        "next_attempt_at", "error", "history", "created_at", "updated_at",
    },
    models.AuthorizationRequest: {
        "id", "state_digest", "browser_digest", "application", "environment", "user",
        "completed_by", "code_verifier", "redirect_uri", "scopes", "expires_at",
        "consumed_at", "updated_at",
    },
    models.ConnectRedemption: {
        "id", "code_digest", "application", "environment", "user", "completed_by",
        "expires_at", "kyc_url", "updated_at",
    },
}  # fmt: skip
