"""Connect: ``redeem`` verifies the person's account with a pasted code.

A code can be phished, so it never signs in and never signs up: it verifies the account that is
signed in.
"""

import time
from datetime import timedelta

from django.contrib.auth.models import AbstractBaseUser
from django.db import IntegrityError
from django.utils import timezone
from django.utils.crypto import salted_hmac
from django.views.decorators.debug import sensitive_variables

from django_identity import database, exceptions, policy
from django_identity.conf import Application
from django_identity.lifecycle import linking, withdrawal
from django_identity.lifecycle.service_data import ServiceData
from django_identity.models import ConnectRedemption, Consent, LinkedIdentity, LinkedVia
from django_identity.service import ServiceClient
from django_identity.service.connect import ConnectAnswer, code_in

NOTHING_WAS_SENT = ("connect_code_malformed", "too_many_tries")
# The pauses in which a repeated request waits for the result of the first one.
PAUSES = (0.1, 0.2, 0.4, 0.8, 1.6)


COMPLETED = "completed"
# A repeated request shows these errors again. After other results it shows "code used".
CLEAR_NOES = (
    "client_rejected", "connect_answer_refused", "connect_code_required", "consent_withdrawn",
    "environment_mismatch", "erasure_pending", "invalid_connect_code", "link_not_allowed",
    "subject_taken", "user_holds_another", "user_inactive",
)  # fmt: skip
CODE_LIFETIME = timedelta(minutes=10)
# Codes that one person may enter in the lifetime of a code.
MOST_TRIES = 5


def identity_of(user: AbstractBaseUser, *, application: Application) -> LinkedIdentity | None:
    """The identity of ``user`` under the application, or None."""
    return LinkedIdentity.objects.under(application).filter(user_id=user.pk).first()


def is_by_code(identity: LinkedIdentity) -> bool:
    """Whether a code was redeemed for the identity, without a full sign-in after it."""
    was_by_code = identity.linked_via == LinkedVia.CONNECT or bool(identity.connect_person)
    return was_by_code and identity.consent == Consent.GRANTED


def undo(user: AbstractBaseUser, *, application: Application) -> bool:
    """Remove the link that a code made. Returns False if there is none, or a sign-in confirmed it.

    Raises like ``withdrawal.disconnect``.
    """
    identity = identity_of(user, application=application)
    if identity is None or identity.linked_via != LinkedVia.CONNECT:
        return False
    return withdrawal.disconnect(identity)


def is_spent(error: exceptions.IdentityError) -> bool:
    """Whether the code counts as spent after ``error``, so that the person needs a new one."""
    if isinstance(error, exceptions.ServiceError):
        return error.may_have_arrived
    return error.code not in NOTHING_WAS_SENT


@sensitive_variables()
def redeem(application: Application, pasted: str, *, user: AbstractBaseUser) -> LinkedIdentity:
    """Redeem the code in ``pasted`` and link its identity to ``user``, who is signed in.

    The code is sent at most once. If several requests have the same code, the first one sends it
    and the others get its result. Must run outside any transaction, because a rollback would forget
    that the code was sent. After an ``IdentityError`` nothing has changed.
    """
    code = code_in(pasted)
    redemption = claim_code(application, code, user=user)
    if redemption is None:
        first = _first_submit(application, code, user)
        if first is not None:
            return _result_of(application, first, user)
        redemption = claim_code(application, code, user=user)
    if redemption is None:
        raise exceptions.FlowError(code="connect_code_in_use")
    if _earlier_tries(redemption, user) >= MOST_TRIES:
        # A code that was not sent may be entered again.
        redemption.delete()
        seconds = int(CODE_LIFETIME.total_seconds())
        raise exceptions.FlowError(code="too_many_tries", retry_after=seconds)
    try:
        answer = ServiceClient(application).redeem_connect_code(code, application.connect_scopes)
    except exceptions.ServiceError as error:
        if error.may_have_arrived:
            _fail_redemption(redemption, error)
        else:
            redemption.delete()
        raise
    try:
        return _link(application, redemption, answer, user)
    except exceptions.IdentityError as error:
        _fail_redemption(redemption, error)
        raise


def _link(
    application: Application,
    redemption: ConnectRedemption,
    answer: ConnectAnswer,
    user: AbstractBaseUser,
) -> LinkedIdentity:
    if not policy.load(application.policy).may_accept_connect_answer(answer):
        raise exceptions.LinkingRefused(code="connect_answer_refused")
    data = ServiceData(
        subject=answer.user_id,
        scopes=application.connect_scopes,
        profile=answer.profile,
        kyc=answer.kyc,
        connect=answer,
        asked_at=redemption.created_at,
    )
    request = linking.LinkRequest(
        application=application,
        arrival=linking.Arrival.CODE,
        user_id=user.pk,
        user=user,
        began_at=redemption.created_at,
    )
    linked = linking.link(request, data)
    _close_redemption(redemption, outcome=COMPLETED)
    return linked.identity


def _first_submit(
    application: Application, code: str, user: AbstractBaseUser
) -> ConnectRedemption | None:
    """The result of the first request with this code, or None if the code was not sent.

    A second request of the same person waits a little while the first one may still be running.
    """
    rows = ConnectRedemption.objects.filter(code_digest=_digest(application, code))
    first = rows.first()
    for pause in PAUSES:
        if first is None or first.outcome or first.user_id != user.pk:
            break
        if timezone.now() > first.created_at + timedelta(seconds=application.timeout):
            break
        time.sleep(pause)
        first = rows.first()
    return first


def _result_of(
    application: Application, first: ConnectRedemption, user: AbstractBaseUser
) -> LinkedIdentity:
    """The first request's result, only for the same user: a code does not prove who has it."""
    if first.user_id != user.pk or first.expires_at <= timezone.now():
        raise exceptions.FlowError(code="connect_code_used")
    if not first.outcome:
        raise exceptions.FlowError(code="connect_code_in_use")
    if first.outcome == exceptions.VerificationPolicyNotMet.code:
        raise exceptions.VerificationPolicyNotMet("handed in again", kyc_url=first.kyc_url)
    if first.outcome in CLEAR_NOES:
        raise exceptions.IdentityError("handed in again", code=first.outcome)
    identity = identity_of(user, application=application)
    is_granted = identity is not None and identity.consent == Consent.GRANTED
    if identity is None or not is_granted or first.outcome != COMPLETED:
        raise exceptions.FlowError(code="connect_code_used")
    return identity


# The stored redemptions


def claim_code(
    application: Application, code: str, *, user: AbstractBaseUser
) -> ConnectRedemption | None:
    """Claim the code for this request. Returns None if it was entered before."""
    now = timezone.now()
    ConnectRedemption.objects.filter(expires_at__lt=now).delete()
    try:
        with database.atomic():
            # One after another, so that ``_earlier_tries`` misses none that is being written.
            database.all_users().select_for_update().filter(pk=user.pk).first()
            return ConnectRedemption.objects.create(
                code_digest=_digest(application, code),
                application=application.alias,
                environment=application.environment,
                user_id=user.pk,
                expires_at=now + CODE_LIFETIME,
            )
    except IntegrityError:
        return None


def _earlier_tries(redemption: ConnectRedemption, user: AbstractBaseUser) -> int:
    """The codes that the same person entered before this one, and that are remembered."""
    remembered = ConnectRedemption.objects.filter(expires_at__gt=timezone.now())
    theirs = remembered.filter(application=redemption.application, user_id=user.pk)
    return theirs.filter(pk__lt=redemption.pk).count()


def _fail_redemption(redemption: ConnectRedemption, error: exceptions.IdentityError) -> None:
    """Record why a sent code linked nobody."""
    kyc_url = error.kyc_url if isinstance(error, exceptions.VerificationPolicyNotMet) else ""
    _close_redemption(redemption, outcome=error.code, kyc_url=kyc_url)


def _close_redemption(redemption: ConnectRedemption, *, outcome: str, kyc_url: str = "") -> None:
    ConnectRedemption.objects.filter(pk=redemption.pk).update(
        outcome=outcome, kyc_url=kyc_url, updated_at=timezone.now()
    )


def _digest(application: Application, code: str) -> str:
    """A keyed digest. A plain digest could be reversed, because there are few possible codes."""
    value = f"{application.alias}/{application.environment}/{code}"
    hashed = salted_hmac("django_identity.redemptions", value, algorithm="sha256")
    return hashed.hexdigest()
