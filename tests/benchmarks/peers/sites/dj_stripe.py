"""dj-stripe with one signed webhook endpoint."""

from __future__ import annotations

APPS = ["djstripe"]
MIDDLEWARE: list[str] = []
BACKENDS: list[str] = []


def settings(service: str) -> dict[str, object]:
    return {
        "STRIPE_LIVE_MODE": False,
        "STRIPE_TEST_SECRET_KEY": "sk_test_0123456789abcdefghijklmn",
        "DJSTRIPE_FOREIGN_KEY_TO_FIELD": "id",
        # The same tables, made at once: its migrations take minutes on SQLite.
        "MIGRATION_MODULES": dict.fromkeys(
            ("admin", "auth", "contenttypes", "djstripe", "sessions"), None
        ),
    }
