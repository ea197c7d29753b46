"""Consents: a person's permission for an application."""

from collections.abc import Iterable

from django.db import transaction

from django_identity.sandbox.events.announcing import announce
from django_identity.sandbox.events.event import EventType
from django_identity.sandbox.instruments import clock
from django_identity.sandbox.models import AccessToken, Client, Consent, Grant, RefreshToken, User


@transaction.atomic
def grant(user: User, client: Client, scopes: Iterable[str]) -> Consent:
    """Record and announce the consent of ``user`` for ``client`` and ``scopes``."""
    consent, _created = Consent.objects.update_or_create(
        user=user,
        client=client,
        defaults={"scopes": list(scopes), "granted_at": clock.now(), "revoked_at": None},
    )
    announce(EventType.CONSENT_GRANTED, user, client, scopes=consent.scopes)
    return consent


@transaction.atomic
def revoke(user: User, client_id: str) -> bool:
    """Revoke and announce the consent for ``client_id``. Its codes and tokens end.

    Returns:
        Whether there was a consent.
    """
    standing = Consent.objects.filter(user=user, client__client_id=client_id, revoked_at=None)
    consent = standing.select_related("client").first()
    _withdraw(user, client_id=client_id)
    if consent is None:
        return False
    announce(EventType.CONSENT_REVOKED, user, consent.client)
    return True


def revoke_all(user: User) -> None:
    """Revoke all consents without announcing it, because the account is closed."""
    _withdraw(user)


def _withdraw(user: User, **of_client: str) -> None:
    """End the consents, codes and tokens of ``user``, all or those of one client."""
    applications = {f"application__{name}": value for name, value in of_client.items()}
    for model in (Grant, RefreshToken, AccessToken):
        model.objects.filter(user=user, **applications).delete()
    clients = {f"client__{name}": value for name, value in of_client.items()}
    Consent.objects.filter(user=user, revoked_at=None, **clients).update(revoked_at=clock.now())


def scopes_of(user: User, client: Client) -> list[str]:
    standing = Consent.objects.filter(user=user, client=client, revoked_at=None).first()
    return list(standing.scopes) if standing else []


def ever_granted(user: User) -> list[Client]:
    """Return the credential sets for which ``user`` has ever granted a consent."""
    consents = Consent.objects.filter(user=user).select_related("client").order_by("pk")
    return [consent.client for consent in consents]


def granted(user: User) -> list[Consent]:
    """Return the granted consents of ``user``, newest first."""
    return list(Consent.objects.filter(user=user, revoked_at=None).select_related("client"))
