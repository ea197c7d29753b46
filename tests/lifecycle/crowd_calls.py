"""What the processes of ``tests.crowd`` call."""

from __future__ import annotations

from django_identity import conf
from django_identity.lifecycle import due_rows
from django_identity.lifecycle.tokens import access_token_for
from django_identity.models import LinkedIdentity


def access_token(identity_id: str) -> str:
    return access_token_for(LinkedIdentity.objects.get(pk=identity_id))


def take() -> list[int]:
    """What one sweep was handed out."""
    return [pk for page in due_rows.take(conf.application(), page=7) for pk in page]
