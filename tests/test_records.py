"""The columns that queries of sites may name, and the constraints that make races harmless."""

from __future__ import annotations

import pytest
from django.apps import apps
from django.db import connection
from django.db.models import F, Field, UniqueConstraint
from django.test.utils import CaptureQueriesContext

from django_identity.models import LinkedIdentity
from django_identity.models.compiled import CompiledQuery
from tests.records import make_identity, make_user

RECORDS = {
    "AuthorizationRequest": """state_digest browser_digest application environment purpose user next
        code_verifier redirect_uri scopes expires_at consumed_at outcome""",
    "LinkedIdentity": """user application environment subject subject_digest consent
        consent_changed_at linked_via scopes kyc_level kyc_status kyc_provider kyc_verified_at
        kyc_checked_at credential credential_expires_at refetch_due_at refetch_failures
        last_error""",
    "TokenGrant": """identity access_token refresh_token scopes access_expires_at refresh_expires_at
        generation lease_until needs_reauthorization""",
    "StoredClaim": """identity claim_type provider value proof_hash issued_at expires_at valid_until
        revoked""",
    "WebhookEvent": """application event_id event_digest event_type occurred_at received_at subject
        payload outcome handled_at attempts next_attempt_at error""",
    "DocumentReading": "identity read_by scope document_types view",
    "ErasureReceipt": """application environment subject_digest event_id requested_at erased_at
        counts""",
}
UNIQUE = {
    "LinkedIdentity": {("user", "application", "environment"), ("subject_digest",)},
    "StoredClaim": {("identity", "claim_type", "provider")},
    "WebhookEvent": {("event_digest",)},
}


@pytest.mark.parametrize("record", RECORDS)
def test_records_have_their_columns(record: str) -> None:
    """Those that are promised, two time-stamps, and what is unique."""
    meta = apps.get_model("django_identity", record)._meta
    columns = {each.name for each in meta.get_fields()}
    assert columns >= {*RECORDS[record].split(), "created_at", "updated_at"}
    unique = {each.fields for each in meta.constraints if isinstance(each, UniqueConstraint)}
    assert unique >= UNIQUE.get(record, set())


def test_what_is_one_of_a_kind_is_unique_by_itself() -> None:
    """A state, and the grant of an identity."""
    for record, column in (("AuthorizationRequest", "state_digest"), ("TokenGrant", "identity")):
        field = apps.get_model("django_identity", record)._meta.get_field(column)
        assert isinstance(field, Field)
        assert field.unique


@pytest.mark.django_db
def test_a_compiled_query_gives_what_the_plain_one_gives() -> None:
    """The row, its annotation and the joined user with all fields, in one statement."""
    made = make_identity(make_user("ada", email="ada@example.org"), scopes=["profile:read"])
    compiled = CompiledQuery(
        lambda given: (
            LinkedIdentity.objects.filter(subject=given)
            .annotate(name=F("user__username"))
            .select_related("user")
        ),
        LinkedIdentity._meta.get_field("subject"),
    )
    for _ in range(2):
        with CaptureQueriesContext(connection) as captured:
            (found,) = compiled.instances(made.subject)
            user = found.user
        assert len(captured) == 1
    plain = LinkedIdentity.objects.get(pk=made.pk)
    assert found.name == "ada"
    for read, stored in ((found, plain), (user, plain.user)):
        assert read._state.db == stored._state.db
        assert not read._state.adding
        for field in stored._meta.concrete_fields:
            assert getattr(read, field.attname) == getattr(stored, field.attname)
    assert list(compiled.instances("nobody")) == []
