"""A million linked identities: PostgreSQL copies one row as often as it is told."""

from __future__ import annotations

from django.db import connection
from django.utils import timezone

from django_identity.models import LinkedIdentity
from tests.records import make_identity, make_user

USERS = """
INSERT INTO auth_user (id, password, is_superuser, username, first_name, last_name, email,
                       is_staff, is_active, date_joined)
SELECT n + 1, '', false, 'user-' || n, '', '', '', false, true, now()
FROM generate_series(1, %s) AS n
"""
IDENTITIES = """
INSERT INTO {table} ({columns})
SELECT {values} FROM {table} AS kept, generate_series(1, %s) AS n
WHERE kept.subject = 'template'
"""
CHANGED = {
    "id": "n + 1",
    "user_id": "n + 1",
    "subject": "'subject-' || n",
    "subject_digest": "md5(n::text) || md5('of ' || n)",
    # The due ones are anywhere in the table, as rows are that were last written at any time.
    "refetch_due_at": "CASE WHEN n %% %s = 0 THEN now() - random() * interval '1 hour' "
    "ELSE now() + random() * interval '18 hours' END",
}


def fill(count: int, *, one_due_in: int) -> None:
    """``count`` identities in empty tables, of which one in so many is due."""
    make_identity(make_user("template"), subject="template", credential_kid="k1")
    table = LinkedIdentity._meta.db_table
    names = [field.column for field in LinkedIdentity._meta.concrete_fields]
    values = [CHANGED.get(name, f"kept.{name}") for name in names]
    insert = IDENTITIES.format(table=table, columns=", ".join(names), values=", ".join(values))
    # The template is number 1.
    with connection.cursor() as cursor:
        cursor.execute(USERS, [count])
        cursor.execute(insert, [one_due_in, count])
        cursor.execute("VACUUM ANALYZE")


def hand_back() -> None:
    """Everything that was handed out is due again, and the table as clean as after a night."""
    LinkedIdentity.objects.filter(refetch_taken_until__gt=timezone.now()).update(
        refetch_taken_until=None, refetch_started=False
    )
    with connection.cursor() as cursor:
        cursor.execute(f"VACUUM {LinkedIdentity._meta.db_table}")
