"""Consents (spec: States: Consent): granted, revoked, in words; and what a person is told.

A person is told by a notice on the account page and by an e-mail, which the control API shows.
"""

from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from django.conf import settings
from django.db import transaction
from django.template.loader import render_to_string
from django.urls import reverse

from django_identity.sandbox import clock, shared
from django_identity.sandbox.events.event import EventType, announce
from django_identity.sandbox.models import Client, Consent, Notice, User

KEPT_EMAILS = 1000


class ScopeWording(NamedTuple):
    """What one scope shares, as the consent screen says it."""

    scope: str
    title: str
    detail: str


_TITLES = {
    "profile:read": "Your profile",
    "kyc:read": "Your verification status",
    "claims:read": "Your verified claims",
    "profile:basic": "Your basic profile",
    "kyc:status": "Your verification status",
    "documents:metadata": "The types of your documents",
    "documents:read": "Your documents",
}
_DETAILS = {
    "claims:read": "Signed statements such as being 18 or older, never the documents behind them",
    "documents:metadata": "Type, country and status, never their content",
    "documents:read": "Passport, national ID and bank verification number, encrypted to this site",
}


def described(scopes: Sequence[str]) -> list[ScopeWording]:
    """Return in words what ``scopes`` hand over, member by member."""
    wordings: list[ScopeWording] = []
    for scope in scopes:
        detail = _DETAILS.get(scope) or shared.in_words(scope, granted=scopes)
        wordings.append(ScopeWording(scope, _TITLES.get(scope, scope), detail))
    return wordings


@transaction.atomic
def grant(user: User, client: Client, scopes: Iterable[str]) -> Consent:
    """Record and announce the consent of ``user`` for ``client`` and ``scopes``.

    Codes and tokens of an earlier consent end if they reach further.
    """
    scopes = list(scopes)
    _narrow(user, client, scopes)
    consent, _ = Consent.objects.update_or_create(
        user=user,
        client=client,
        defaults={"scopes": scopes, "granted_at": clock.now(), "revoked_at": None},
    )
    announce(EventType.CONSENT_GRANTED, user, client, scopes=consent.scopes)
    return consent


def _narrow(user: User, client: Client, scopes: Sequence[str]) -> None:
    """End the codes and tokens with any other scope than ``scopes``."""

    def wider(rows: Any) -> list[int]:
        of_client = rows.filter(application=client)
        return [
            row.pk for row in of_client if not set(row.scope.split()) <= set(scopes)
        ]

    for rows in (
        user.sandbox_refreshtoken,
        user.sandbox_accesstoken,
        user.sandbox_grant,
    ):
        rows.filter(pk__in=wider(rows)).delete()


@transaction.atomic
def revoke(user: User, client_id: str) -> bool:
    """Revoke and announce the consent for ``client_id``. Its codes and tokens end.

    Returns:
        Whether there was a consent.
    """
    standing = Consent.objects.filter(
        user=user,
        client__client_id=client_id,
        revoked_at=None,
    )
    consent = standing.select_related("client").first()
    _withdraw(user, client_id=client_id)
    if consent is None:
        return False
    announce(EventType.CONSENT_REVOKED, user, consent.client)
    return True


@transaction.atomic
def request_deletion(user: User) -> bool:
    """Mark the account for deletion, end all access, and announce it.

    Consents, tokens, Connect codes and notices go with it. Every application that ever had the
    person's consent hears of it. The account cannot be signed in to or read any more.

    Returns:
        Whether this is the first request.
    """
    marked = User.objects.filter(pk=user.pk, deletion_requested_at=None)
    if not marked.update(deletion_requested_at=clock.now()):
        return False
    _withdraw(user)
    user.connectcode_set.all().delete()
    user.notice_set.all().delete()
    announce(EventType.DATA_DELETION_REQUESTED, user)
    return True


def _withdraw(user: User, **of_client: str) -> None:
    """End the consents, codes and tokens of ``user``, all or those of one client."""
    applications = {f"application__{name}": value for name, value in of_client.items()}
    for rows in (
        user.sandbox_grant,
        user.sandbox_refreshtoken,
        user.sandbox_accesstoken,
    ):
        rows.filter(**applications).delete()
    clients = {f"client__{name}": value for name, value in of_client.items()}
    Consent.objects.filter(user=user, revoked_at=None, **clients).update(
        revoked_at=clock.now(),
    )


def granted(user: User) -> list[Consent]:
    """Return the granted consents of ``user``, newest first."""
    return list(
        Consent.objects.filter(user=user, revoked_at=None).select_related("client"),
    )


#: What was sent, the oldest first.
emails: deque[dict[str, Any]] = deque(maxlen=KEPT_EMAILS)


def tell(user: User, client: Client, scopes: Sequence[str]) -> None:
    """Store a notice that ``client`` received ``scopes``, and e-mail it after the commit."""
    notice = Notice.objects.create(
        user=user,
        client=client,
        scopes=list(scopes),
        created_at=clock.now(),
    )
    context = {
        "name": client.name,
        "notice": notice,
        "scopes": described(scopes),
        "account": settings.SANDBOX_ORIGIN + reverse("account"),
    }
    email = {
        "to": [user.email],
        "subject": f"{' '.join(client.name.split())} received your information",
        "body": render_to_string("sandbox/connect_email.txt", context),
        "sent_at": clock.timestamp(clock.now()),
    }
    transaction.on_commit(lambda: emails.append(email))
