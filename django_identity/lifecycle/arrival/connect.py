"""Connect: ``redeem`` verifies the person's account with a pasted code.

A code can be phished, so it verifies the account that is signed in. With
``IdentityPolicy.connect_may_sign_in`` it also signs in, or signs up, a person who is not.
"""

import time
from dataclasses import dataclass
from datetime import timedelta
from functools import partial

from django.contrib.auth.models import AbstractBaseUser
from django.db import IntegrityError
from django.utils import timezone
from django.utils.crypto import salted_hmac
from django.views.decorators.debug import sensitive_variables

from django_identity import database, exceptions, policy
from django_identity.conf import Application
from django_identity.lifecycle.arrival import limits, linking
from django_identity.lifecycle.arrival.service_data import ServiceData
from django_identity.models import ConnectRedemption, Consent, LinkedIdentity, LinkedVia, Purpose
from django_identity.service import ServiceClient
from django_identity.service.answers import ConnectAnswer
from django_identity.service.connect_code import code_in

NOTHING_WAS_SENT = (
    exceptions.ConnectCodeMalformed,
    exceptions.ConnectSignInNeeded,
    exceptions.TooManyTries,
)
# The pauses in which a repeated request waits for the result of the first one.
PAUSES = (0.1, 0.2, 0.4, 0.8, 1.6)


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


@dataclass(frozen=True, slots=True)
class Redeemed:
    """The result of a redemption. ``login``: whether to sign the browser in as ``user``."""

    user: AbstractBaseUser
    identity: LinkedIdentity
    login: bool


def identity_of(user: AbstractBaseUser, *, application: Application) -> LinkedIdentity | None:
    """The identity of ``user`` under the application, or None."""
    return LinkedIdentity.objects.under(application).filter(user_id=user.pk).first()


def is_by_code(identity: LinkedIdentity) -> bool:
    """Whether a code was redeemed for the identity, without a full sign-in after it."""
    was_by_code = identity.linked_via != LinkedVia.OAUTH or bool(identity.connect_person)
    return was_by_code and identity.consent == Consent.GRANTED


def may_redeem(application: Application, user: AbstractBaseUser | None) -> bool:
    """Whether the site accepts a code from ``user``, or from a person who is not signed in."""
    return user is not None or policy.load(application.policy).connect_may_sign_in


def is_spent(error: exceptions.IdentityError) -> bool:
    """Whether the code counts as spent after ``error``, so that the person needs a new one."""
    if isinstance(error, exceptions.ServiceError):
        return error.may_have_arrived
    return not isinstance(error, NOTHING_WAS_SENT)


@sensitive_variables()
def redeem(
    application: Application, pasted: str, *, user: AbstractBaseUser | None, address: str
) -> Redeemed:
    """Redeem the code in ``pasted`` and link its identity to ``user``.

    ``user`` is the signed-in user or None, ``address`` their network address. The code is sent at
    most once. If several requests have the same code, the first one sends it and the others get its
    result. Must run outside any transaction, because a rollback would forget that the code was
    sent. After an ``IdentityError`` nothing has changed.
    """
    if not may_redeem(application, user):
        raise exceptions.ConnectSignInNeeded
    code = code_in(pasted)
    redemption = claim_code(application, code, user=user)
    if redemption is None:
        first = _first_submit(application, code, user)
        if first is not None:
            return _result_of(application, first, user)
        redemption = claim_code(application, code, user=user)
    if redemption is None:
        raise exceptions.ConnectCodeInUse
    # A code that was not sent may be entered again.
    try:
        taken = limits.take(application, user=user, address=address)
    except Exception:
        redemption.delete()
        raise
    try:
        answer = ServiceClient(application).redeem_connect_code(code, application.connect_scopes)
    except exceptions.ServiceError as error:
        if error.may_have_arrived:
            fail_redemption(redemption, error)
        else:
            redemption.delete()
            limits.give_back(taken)
        raise
    try:
        return _link(application, redemption, answer, user)
    except exceptions.IdentityError as error:
        fail_redemption(redemption, error)
        raise


@sensitive_variables()
def _link(
    application: Application,
    redemption: ConnectRedemption,
    answer: ConnectAnswer,
    user: AbstractBaseUser | None,
) -> Redeemed:
    if not policy.load(application.policy).may_accept_connect_answer(answer):
        raise exceptions.ConnectAnswerRefused
    data = ServiceData(
        subject=answer.user_id,
        scopes=application.connect_scopes,
        profile=answer.profile,
        kyc=answer.kyc,
        connect=answer,
    )
    request = linking.LinkRequest(
        application=application,
        purpose=Purpose.SIGN_IN if user is None else Purpose.LINK,
        user_id=user.pk if user else None,
        began_at=redemption.created_at,
        complete=partial(complete_redemption, redemption),
    )
    identity, owner = linking.link(request, data, user=user)
    return Redeemed(owner, identity, login=user is None)


@sensitive_variables()
def _first_submit(
    application: Application, code: str, user: AbstractBaseUser | None
) -> ConnectRedemption | None:
    """The result of the first request with this code, or None if the code was not sent.

    A second request of the same person waits a little while the first one may still be running.
    """
    rows = ConnectRedemption.objects.filter(code_digest=_digest(application, code))
    first = rows.first()
    for pause in PAUSES:
        if first is None or first.outcome or not _is_theirs(first, user):
            break
        if timezone.now() > first.created_at + timedelta(seconds=application.timeout):
            break
        time.sleep(pause)
        first = rows.first()
    return first


def _is_theirs(first: ConnectRedemption, user: AbstractBaseUser | None) -> bool:
    return user is not None and user.pk in (first.user_id, first.completed_by_id)


def _result_of(
    application: Application, first: ConnectRedemption, user: AbstractBaseUser | None
) -> Redeemed:
    """The first request's result, only for the same user: a code does not prove who has it."""
    if user is None or not _is_theirs(first, user) or first.expires_at <= timezone.now():
        raise exceptions.ConnectCodeUsed
    if not first.outcome:
        raise exceptions.ConnectCodeInUse
    if first.outcome == exceptions.VerificationPolicyNotMet.code:
        raise exceptions.VerificationPolicyNotMet("handed in again", kyc_url=first.kyc_url)
    if first.outcome in CLEAR_NOES:
        raise CLEAR_NOES[first.outcome]("handed in again")
    identity = identity_of(user, application=application)
    was_theirs = first.completed_by_id == user.pk
    if was_theirs and identity is not None and identity.consent == Consent.GRANTED:
        return Redeemed(user, identity, login=False)
    raise exceptions.ConnectCodeUsed


# The stored redemptions


def claim_code(
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


def complete_redemption(
    redemption: ConnectRedemption, *, completed_by: AbstractBaseUser | None
) -> None:
    """Record the user whom the code linked or signed in."""
    ConnectRedemption.objects.filter(pk=redemption.pk).update(
        outcome=COMPLETED,
        completed_by_id=completed_by.pk if completed_by else None,
        updated_at=timezone.now(),
    )


def fail_redemption(redemption: ConnectRedemption, error: exceptions.IdentityError) -> None:
    """Record why a sent code linked nobody."""
    kyc_url = error.kyc_url if isinstance(error, exceptions.VerificationPolicyNotMet) else ""
    ConnectRedemption.objects.filter(pk=redemption.pk).update(
        outcome=error.code, kyc_url=kyc_url, updated_at=timezone.now()
    )


def _digest(application: Application, code: str) -> str:
    """A keyed digest. A plain digest could be reversed, because there are few possible codes."""
    value = f"{application.alias}/{application.environment}/{code}"
    hashed = salted_hmac("django_identity.redemptions", value, algorithm="sha256")
    return hashed.hexdigest()
