"""Redeemed Connect codes: written down before the service is asked, so that each is sent once."""

from __future__ import annotations

from datetime import timedelta

from django.contrib.auth.models import AbstractBaseUser
from django.db import IntegrityError, transaction
from django.utils import timezone
from django.utils.crypto import salted_hmac

from django_identity.conf import Application
from django_identity.exceptions import (
    ClientRejected,
    ConnectAnswerRefused,
    ConnectCodeRequired,
    EnvironmentMismatch,
    IdentityError,
    InvalidConnectCode,
    LinkNotAllowed,
    SubjectTaken,
    UserHoldsAnother,
    UserInactive,
    VerificationPolicyNotMet,
)
from django_identity.models import ConnectRedemption

COMPLETED = "completed"
# What the person is told again; after any other end a repeat learns that the code was used.
CLEAR_NOES: dict[str, type[IdentityError]] = {
    kind.code: kind
    for kind in (
        ClientRejected,
        ConnectAnswerRefused,
        ConnectCodeRequired,
        EnvironmentMismatch,
        InvalidConnectCode,
        LinkNotAllowed,
        SubjectTaken,
        UserHoldsAnother,
        UserInactive,
    )
}
CODE_LIFETIME = timedelta(minutes=10)


def claim(
    application: Application, code: str, *, user: AbstractBaseUser | None
) -> ConnectRedemption | None:
    """Take the code for this one request, or None if somebody handed it in before.

    Rows of codes that have run out anyway go at the same time.
    """
    now = timezone.now()
    ConnectRedemption.objects.filter(expires_at__lt=now).delete()
    try:
        with transaction.atomic():
            return ConnectRedemption.objects.create(
                code_digest=_digest(application, code),
                application=application.alias,
                environment=application.environment,
                user_id=user.pk if user else None,
                expires_at=now + CODE_LIFETIME,
            )
    except IntegrityError:
        return None


def find(application: Application, code: str) -> ConnectRedemption | None:
    """What became of a code that was handed in before."""
    return ConnectRedemption.objects.filter(code_digest=_digest(application, code)).first()


def release(redemption: ConnectRedemption) -> None:
    """Forget a claim whose code was never sent: it may be handed in again."""
    ConnectRedemption.objects.filter(pk=redemption.pk).delete()


def complete(redemption: ConnectRedemption, *, completed_by: AbstractBaseUser | None) -> None:
    """Write down whom the code linked or signed in."""
    ConnectRedemption.objects.filter(pk=redemption.pk).update(
        outcome=COMPLETED,
        completed_by_id=completed_by.pk if completed_by else None,
        updated_at=timezone.now(),
    )


def fail(redemption: ConnectRedemption, error: IdentityError) -> None:
    """Write down why a code that was sent linked nobody."""
    kyc_url = error.kyc_url if isinstance(error, VerificationPolicyNotMet) else ""
    ConnectRedemption.objects.filter(pk=redemption.pk).update(
        outcome=error.code, kyc_url=kyc_url, updated_at=timezone.now()
    )


def failure_of(redemption: ConnectRedemption) -> IdentityError | None:
    """Why the code linked nobody, to be told to the person who handed it in; None if unclear."""
    if redemption.outcome == VerificationPolicyNotMet.code:
        return VerificationPolicyNotMet("handed in again", kyc_url=redemption.kyc_url)
    kind = CLEAR_NOES.get(redemption.outcome)
    return kind("handed in again") if kind else None


def _digest(application: Application, code: str) -> str:
    """Keyed, because so few codes there are that a plain digest could be searched for one."""
    value = f"{application.alias}/{application.environment}/{code}"
    hashed = salted_hmac("django_identity.redemptions", value, algorithm="sha256")
    return hashed.hexdigest()
