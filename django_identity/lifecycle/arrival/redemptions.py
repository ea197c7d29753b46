"""Redemptions of Connect codes: stored before the service is called, so each is sent once."""

from datetime import timedelta

from django.contrib.auth.models import AbstractBaseUser
from django.db import IntegrityError
from django.utils import timezone
from django.utils.crypto import salted_hmac

from django_identity import database, exceptions
from django_identity.conf import Application
from django_identity.models import ConnectRedemption

COMPLETED = "completed"
# A repeated request shows these errors again. After other results it shows "code used".
CLEAR_NOES: dict[str, type[exceptions.IdentityError]] = {
    kind.code: kind
    for kind in (
        exceptions.ClientRejected,
        exceptions.ConnectAnswerRefused,
        exceptions.ConnectCodeRequired,
        exceptions.EnvironmentMismatch,
        exceptions.InvalidConnectCode,
        exceptions.LinkNotAllowed,
        exceptions.SubjectTaken,
        exceptions.UserHoldsAnother,
        exceptions.UserInactive,
    )
}
CODE_LIFETIME = timedelta(minutes=10)


def claim(
    application: Application, code: str, *, user: AbstractBaseUser | None
) -> ConnectRedemption | None:
    """Claim the code for this request. Returns None if it was entered before."""
    now = timezone.now()
    ConnectRedemption.objects.filter(expires_at__lt=now).delete()
    try:
        with database.atomic():
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
    """The redemption of a code that was entered before."""
    return ConnectRedemption.objects.filter(code_digest=_digest(application, code)).first()


def release(redemption: ConnectRedemption) -> None:
    """Delete a redemption whose code was never sent, so that it may be entered again."""
    ConnectRedemption.objects.filter(pk=redemption.pk).delete()


def complete(redemption: ConnectRedemption, *, completed_by: AbstractBaseUser | None) -> None:
    """Record the user whom the code linked or signed in."""
    ConnectRedemption.objects.filter(pk=redemption.pk).update(
        outcome=COMPLETED,
        completed_by_id=completed_by.pk if completed_by else None,
        updated_at=timezone.now(),
    )


def fail(redemption: ConnectRedemption, error: exceptions.IdentityError) -> None:
    """Record why a sent code linked nobody."""
    kyc_url = error.kyc_url if isinstance(error, exceptions.VerificationPolicyNotMet) else ""
    ConnectRedemption.objects.filter(pk=redemption.pk).update(
        outcome=error.code, kyc_url=kyc_url, updated_at=timezone.now()
    )


def failure_of(redemption: ConnectRedemption) -> exceptions.IdentityError | None:
    """The error to show to the person who entered the code, or None if the result is unclear."""
    if redemption.outcome == exceptions.VerificationPolicyNotMet.code:
        return exceptions.VerificationPolicyNotMet("handed in again", kyc_url=redemption.kyc_url)
    kind = CLEAR_NOES.get(redemption.outcome)
    return kind("handed in again") if kind else None


def _digest(application: Application, code: str) -> str:
    """A keyed digest. A plain digest could be reversed, because there are few possible codes."""
    value = f"{application.alias}/{application.environment}/{code}"
    hashed = salted_hmac("django_identity.redemptions", value, algorithm="sha256")
    return hashed.hexdigest()
