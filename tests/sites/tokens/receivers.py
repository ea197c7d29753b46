"""A person's token ends with their consent, as ``docs/api.md`` shows."""

from __future__ import annotations

from typing import Any

from django.dispatch import receiver
from rest_framework.authtoken.models import Token

from django_identity.signals import consent_revoked, identity_unlinked


@receiver([consent_revoked, identity_unlinked])
def end_token(identity: Any = None, user: Any = None, **_: object) -> None:
    Token.objects.filter(user=user or identity.user).delete()
