"""Indexes for the filters and orders of the admin's lists.

PostgreSQL builds them beside sign-ins and webhooks, without blocking writes. A build that was
interrupted leaves an invalid index of that name, which the next try replaces.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import ProjectState

if TYPE_CHECKING:
    _Index = tuple[str, str, tuple[str, ...]]

ADDED: tuple[_Index, ...] = (
    ("linkedidentity", "identity_most_failures", ("refetch_failures", "id")),
    (
        "linkedidentity",
        "identity_facets",
        ("environment", "consent", "kyc_status", "kyc_level"),
    ),
    ("linkedidentity", "identity_expiry", ("credential_expires_at",)),
    ("linkedidentity", "identity_created", ("created_at",)),
    ("linkedidentity", "identity_due_order", ("refetch_due_at", "id")),
    ("tokengrant", "identity_grant_dead", ("needs_reauthorization",)),
    ("webhookevent", "identity_event_type", ("event_type", "application")),
    ("erasurereceipt", "identity_receipt_place", ("environment", "application")),
    ("erasurereceipt", "identity_receipt_pending", ("erased_at",)),
    ("erasurereceipt", "identity_receipt_order", ("requested_at", "id")),
)


class AddIndexBesideWrites(migrations.AddIndex):
    """``AddIndex``, on PostgreSQL ``CONCURRENTLY``. Django's own operation needs a driver of it."""

    def database_forwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState,
        to_state: ProjectState,
    ) -> None:
        if schema_editor.connection.vendor != "postgresql":
            super().database_forwards(app_label, schema_editor, from_state, to_state)
            return
        model = to_state.apps.get_model(app_label, self.model_name)
        if not self.allow_migrate_model(schema_editor.connection.alias, model):
            return
        name = schema_editor.quote_name(self.index.name)
        schema_editor.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {name}")
        schema_editor.add_index(model, self.index, concurrently=True)  # type: ignore[call-arg]


class Migration(migrations.Migration):
    # CONCURRENTLY cannot run in a transaction.
    atomic = False
    dependencies = (("django_identity", "0013_refused_deliveries"),)
    operations = (
        *(
            AddIndexBesideWrites(model, models.Index(fields=list(fields), name=name))
            for model, name, fields in ADDED
        ),
        migrations.RemoveIndex("linkedidentity", "identity_failing"),
    )
