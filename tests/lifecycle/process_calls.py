"""What the processes of ``tests.concurrency`` call."""

from django_identity.lifecycle.said import due
from django_identity.lifecycle.said.tokens import access_token_for
from django_identity.models import LinkedIdentity


def access_token(identity_id: str) -> str:
    return access_token_for(LinkedIdentity.objects.get(pk=identity_id)).reveal()


def take() -> list[int]:
    """What one worker takes."""
    taken: list[int] = []
    while rows := due.take(7):
        taken += [row.pk for row in rows]
    return taken
