"""An erasure erases accounts that were made for the identity, and leaves older ones."""

from __future__ import annotations

from datetime import timedelta

from django.conf import settings
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps
from django.db.models import F

# An account and its identity were made in one transaction.
AT_ONCE = timedelta(minutes=1)


def mark_made_accounts(apps: StateApps, editor: BaseDatabaseSchemaEditor) -> None:
    """By the dates; where the user model has none, every account counts as the older one."""
    user_model = apps.get_model(settings.AUTH_USER_MODEL)
    if "date_joined" not in {field.name for field in user_model._meta.get_fields()}:
        return
    identities = apps.get_model("django_identity", "LinkedIdentity").objects.using(
        editor.connection.alias
    )
    made = identities.filter(user__date_joined__gte=F("created_at") - AT_ONCE)
    keys = list(made.values_list("pk", flat=True))
    for start in range(0, len(keys), 500):
        identities.filter(pk__in=keys[start : start + 500]).update(account_made=True)
    receipts = apps.get_model("django_identity", "ErasureReceipt").objects.using(
        editor.connection.alias
    )
    owners = identities.filter(account_made=True).values("user_id")
    receipts.filter(erased_at=None, user_id__in=owners).update(account_made=True)


class Migration(migrations.Migration):
    dependencies = (
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
        ("django_identity", "0004_accounts_and_codes"),
    )
    operations = (
        migrations.AddField(
            "linkedidentity",
            "account_made",
            models.BooleanField(
                "account made for it", default=False, help_text="Not an older account of the site."
            ),
        ),
        migrations.AddField(
            "erasurereceipt",
            "account_made",
            models.BooleanField(default=False, help_text="The account was made for the identity."),
        ),
        migrations.AddField(
            "erasurereceipt",
            "account_kept",
            models.CharField(
                "account kept",
                max_length=16,
                blank=True,
                choices=[
                    ("older", "It is older than the link."),
                    ("privileged", "It belongs to staff."),
                    ("policy", "The site's policy keeps it."),
                ],
            ),
        ),
        migrations.RunPython(mark_made_accounts, migrations.RunPython.noop),
    )
