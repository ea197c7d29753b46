"""Consents: a person's permission for an application, and what ends with it."""

from collections.abc import Iterable

from django.db import transaction

from django_identity.sandbox import clock
from django_identity.sandbox.models import (
    AccessToken,
    Client,
    Consent,
    Grant,
    RefreshToken,
    User,
)


def grant(user: User, client: Client, scopes: Iterable[str]) -> Consent:
    """Record that ``user`` allowed ``client`` the ``scopes``; the newest approval counts."""
    consent, _created = Consent.objects.update_or_create(
        user=user,
        client=client,
        defaults={"scopes": list(scopes), "granted_at": clock.now(), "revoked_at": None},
    )
    return consent


@transaction.atomic
def revoke(user: User, client_id: str) -> bool:
    """Withdraw the consent for ``client_id`` and every code and token that came of it.

    Returns:
        Whether there was a consent to withdraw.
    """
    of_client = {"user": user, "application__client_id": client_id}
    for model in (Grant, RefreshToken, AccessToken):
        model.objects.filter(**of_client).delete()
    granted = Consent.objects.filter(user=user, client__client_id=client_id, revoked_at=None)
    return bool(granted.update(revoked_at=clock.now()))


def granted(user: User) -> list[Consent]:
    """Return the consents of ``user`` that stand, the newest first."""
    return list(Consent.objects.filter(user=user, revoked_at=None).select_related("client"))
