"""The columns that queries of sites may name, and the constraints that make races harmless."""

import pytest
from django.apps import apps
from django.db.models import Field, UniqueConstraint

RECORDS = {
    "AuthorizationRequest": """state_digest browser_digest application environment purpose user next
        completed_by code_verifier redirect_uri scopes expires_at consumed_at outcome""",
    "ConnectRedemption": """code_digest application user expires_at outcome""",
    "LinkedIdentity": """user application environment subject subject_digest consent
        signed_in_at revoked_at revoked_by linked_via account_made scopes kyc_level kyc_status
        kyc_provider kyc_verified_at kyc_said_at credential_issued_at credential_expires_at
        refetch_due_at refetch_failures last_error connect_issued_at connect_person session_epoch
        version""",
    "TokenGrant": """identity access_token refresh_token scopes access_expires_at refresh_expires_at
        generation lease_until retry_at needs_reauthorization""",
    "StoredClaim": """identity claim_type provider value proof_hash issued_at expires_at valid_until
        revoked_at""",
    "WebhookEvent": """application event_id event_digest event_type occurred_at received_at subject
        subject_digest payload outcome handled_at handled_by attempts next_attempt_at error""",
    "ErasureReceipt": """application identity user event_id requested_at erased_at
        counts account_kept audit attempts next_attempt_at error""",
}
UNIQUE = {
    "LinkedIdentity": {("user", "application", "environment"), ("subject_digest",)},
    "StoredClaim": {("identity", "claim_type", "provider")},
    "WebhookEvent": {("event_digest",)},
}


@pytest.mark.parametrize("record", RECORDS)
def test_records_have_their_columns(record: str) -> None:
    """Those that are promised and no more, two time-stamps, and what is unique."""
    meta = apps.get_model("django_identity", record)._meta
    columns = {each.name for each in meta.concrete_fields}
    assert columns == {*RECORDS[record].split(), "id", "created_at"}
    unique = {each.fields for each in meta.constraints if isinstance(each, UniqueConstraint)}
    assert unique >= UNIQUE.get(record, set())


def test_there_are_seven_tables() -> None:
    assert {each.__name__ for each in apps.get_app_config("django_identity").get_models()} == {
        *RECORDS
    }


def test_what_is_one_of_a_kind_is_unique_by_itself() -> None:
    """A state, and the grant of an identity."""
    for record, column in (("AuthorizationRequest", "state_digest"), ("TokenGrant", "identity")):
        field = apps.get_model("django_identity", record)._meta.get_field(column)
        assert isinstance(field, Field)
        assert field.unique
