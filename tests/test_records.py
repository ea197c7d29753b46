"""The columns of each table, who is shown them, and the constraints that make races harmless."""

import pytest
from django.apps import apps
from django.core.exceptions import FieldDoesNotExist
from django.db import IntegrityError, transaction
from django.db.models import UniqueConstraint

from django_identity.lifecycle.leaving.dossier import PLACES
from django_identity.models import LinkedIdentity
from tests.factories import make_identity, make_user

#: Secrets and internals. Whoever adds a column decides: ``shown`` in the dossier, or withheld here.
WITHHELD = {
    "LinkedIdentity": """user subject_digest refetch_due_at refetch_failures refetch_failed_at
        last_error session_epoch version""",
    "StoredClaim": "identity created_at",
    "TokenGrant": """identity access_token refresh_token generation lease_until retry_at
        created_at""",
    "WebhookEvent": """event_id event_digest subject subject_digest handled_at
        handled_by attempts next_attempt_at error created_at""",
    "AuthorizationRequest": """state_digest browser_digest environment user
        completed_by code_verifier redirect_uri scopes expires_at consumed_at""",
    "ConnectRedemption": "code_digest user expires_at",
    "SubjectLock": "",
    "UpkeepRun": "begun_at paused_until created_at",
    "ErasureReceipt": """account subject_digest account_made requested_at erased_at
        counts account_kept account_was_gone attempts next_attempt_at error created_at""",
}
UNIQUE = {
    "LinkedIdentity": {("user",), ("subject_digest",)},
    "StoredClaim": {("identity", "claim_type", "provider")},
    "WebhookEvent": {("event_digest",)},
    "TokenGrant": {("identity",)},
    "AuthorizationRequest": {("state_digest",)},
    "ConnectRedemption": {("code_digest",)},
    "SubjectLock": {("digest",)},
    "ErasureReceipt": {("account",)},
}


def test_there_are_nine_tables():
    models = apps.get_app_config("django_identity").get_models()
    assert {each.__name__ for each in models if not each._meta.proxy} == {*WITHHELD}


@pytest.mark.parametrize("record", WITHHELD)
def test_records_have_their_columns(record):
    """Those that are shown or withheld and no more; a state, a code and a grant are one each."""
    model = apps.get_model("django_identity", record)
    columns = {each.name: each for each in model._meta.concrete_fields}
    shown = [name for place in PLACES if place.model is model for name in place.shown]
    named = {*shown, *WITHHELD[record].split(), model._meta.pk.name}
    assert {*columns} == named
    unique = {(name,) for name, each in columns.items() if each.unique} - {("id",)}
    constraints = model._meta.constraints
    unique |= {
        each.fields for each in constraints if isinstance(each, UniqueConstraint)
    }
    assert unique == UNIQUE.get(record, set())


@pytest.mark.parametrize("record", WITHHELD)
def test_what_a_column_may_hold_is_valid(record):
    """A site may validate every row before it is saved, with what is NULL or empty."""
    for each in apps.get_model("django_identity", record)._meta.concrete_fields:
        may_be_empty = each.null or each.get_default() in ([], {})
        assert each.blank or not may_be_empty, each


@pytest.mark.django_db
def test_no_link_by_code_has_made_its_account():
    """The database refuses it, whoever writes the row: its withdrawal would orphan the account."""
    make_identity(make_user(), account_made=True)
    identities = LinkedIdentity.objects.all()
    for change in ({}, {"made_account": "7"}):
        with pytest.raises(IntegrityError), transaction.atomic():
            identities.update(linked_via="connect", **change)
    identities.update(linked_via="connect", made_account="")


def test_set_columns_refuses_a_misspelt_column():
    identity = LinkedIdentity()
    identity.set_columns({"kyc_level": "level_2"})
    assert identity.kyc_level == "level_2"
    with pytest.raises(FieldDoesNotExist):
        identity.set_columns({"kyc_leve": "level_3"})
