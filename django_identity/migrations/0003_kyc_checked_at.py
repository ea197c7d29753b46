"""A KYC level counts only for a time after the service last vouched for it."""

from __future__ import annotations

from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps
from django.db.models import F
from django.utils import timezone


def date_levels(apps: StateApps, editor: BaseDatabaseSchemaEditor) -> None:
    """What is stored was said at the last KYC event or sign-in; where it can be, it is read anew."""
    identities = apps.get_model("django_identity", "LinkedIdentity").objects.using(
        editor.connection.alias
    )
    said = identities.filter(consent="granted").exclude(kyc_status="")
    said.update(kyc_checked_at=F("kyc_changed_at"))
    grants = apps.get_model("django_identity", "TokenGrant").objects.using(editor.connection.alias)
    usable = grants.filter(needs_reauthorization=False).values("identity_id")
    said.filter(refetch_due_at=None, pk__in=usable).update(refetch_due_at=timezone.now())


class Migration(migrations.Migration):
    dependencies = (("django_identity", "0002_room_for_leases"),)
    operations = (
        migrations.AddField(
            "linkedidentity",
            "kyc_checked_at",
            models.DateTimeField(
                "KYC checked", null=True, help_text="When the service last said so."
            ),
        ),
        migrations.RunPython(date_levels, migrations.RunPython.noop),
    )
