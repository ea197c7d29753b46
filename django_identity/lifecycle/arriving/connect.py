"""Connect: ``redeem`` verifies the person's account with a pasted code.

A code can be phished: if somebody is tricked into pasting another person's code, that person's
identity is linked to their account. So a code can do little, and this is all:

- it verifies the account that is signed in, and never signs in or up (``decisions.DECISIONS``,
  ``LinkedIdentity.signs_in``; a constraint of the table keeps it from being the only way in);
- it links only what was never linked here (``decisions.DECISIONS``);
- staff cannot use it, unless the policy says otherwise (``policy.may_link``);
- it brings no claims, and a level for 30 days (``kyc.HELD_BY_CODE``), or as long as that of a
  sign-in if the person has allowed ``kyc:read``;
- it gives no scope of ``LATER_SCOPES`` (``scopes.with_code``), and writes no field of the account
  (``linking``);
- the end of its consent deletes the link (``withdrawal.revoke``);
- it has no say about the account's erasure (``erasure.erase``);
- one person may enter five codes in ten minutes (``MOST_TRIES``), and each code is sent once.
"""

from datetime import timedelta
from functools import partial

from django.contrib.auth.models import AbstractBaseUser
from django.db import IntegrityError
from django.utils import timezone
from django.utils.crypto import salted_hmac

from django_identity import conf, database, exceptions, policy
from django_identity.lifecycle.arriving import linking
from django_identity.lifecycle.arriving.request import Arrival, LinkRequest
from django_identity.lifecycle.ground import withdrawal
from django_identity.lifecycle.leaving import disconnecting
from django_identity.logs import LogEvent, log
from django_identity.models import ConnectRedemption, Consent, LinkedIdentity
from django_identity.models.flows import COMPLETED
from django_identity.service import ServiceClient
from django_identity.service.connect import ConnectAnswer, code_in

SALT = "django_identity.redemptions"
CODE_LIFETIME = timedelta(minutes=10)
# Codes that one person may enter in the lifetime of a code.
MOST_TRIES = 5
#: With these nothing was sent.
NOT_SENT = ("connect_code_malformed", "too_many_tries", "erasure_pending")


def identity_of(user: AbstractBaseUser) -> LinkedIdentity | None:
    """The identity of ``user``, or None."""
    return LinkedIdentity.objects.of_user(user.pk)


def undo(user: AbstractBaseUser) -> bool:
    """Remove the link that a code made. Returns False if it is missing, or a sign-in confirmed it.

    Raises like ``disconnecting.disconnect``.
    """
    found = identity_of(user)
    if found is None:
        return False
    with database.atomic():
        # A sign-in may confirm the link at this moment, which then stays.
        identity = LinkedIdentity.objects.locked_row(found)
        if identity is None or not identity.connect_only:
            return False
        return disconnecting.disconnect(identity)


def is_spent(error: exceptions.IdentityError) -> bool:
    """Whether the code counts as spent after ``error``, so that the person needs a new one."""
    if isinstance(error, exceptions.ServiceError):
        return error.may_have_arrived
    return error.code not in NOT_SENT


def redeem(pasted: str, *, user: AbstractBaseUser) -> LinkedIdentity:
    """Redeem the code in ``pasted`` and link its identity to ``user``, who is signed in.

    The code is sent at most once. A later call gets the identity that it linked, or is refused.
    After an error nothing is linked.

    Raises:

    - ``FlowError``: the code has another shape, is used, or too many were tried
    - ``LinkingRefused``: the subject may not be linked to ``user``
    - ``ServiceError``: the service refused the code, or did not answer
    - ``ValueError``: ``user`` is no stored account
    - ``RuntimeError``: inside a transaction, whose rollback would forget that the code was sent
    """
    database.require_account(user)
    code = code_in(pasted)
    database.require_no_transaction(database.IN_STEPS)
    redemption = _entered(code, user)
    if not _claim(redemption, user):
        return _linked_before(redemption, user)

    try:
        application = conf.application()
        answer = ServiceClient(application).redeem_connect_code(
            code,
            application.connect_scopes,
        )
        _keep(redemption, request_id=answer.request_id)
        identity = _link(answer, redemption)
    except exceptions.IdentityError as error:
        _give_up(redemption, error)
        raise
    except Exception:
        _keep(redemption, outcome=exceptions.UnexpectedError.code)
        raise

    _keep(redemption, outcome=COMPLETED)
    number = exceptions.shaped_code(redemption.request_id) or None
    log(LogEvent.CONNECT_REDEEMED, request_id=number)
    return identity


def _entered(code: str, user: AbstractBaseUser) -> ConnectRedemption:
    """The record of a code that ``user`` has entered. It is not saved yet."""
    # A keyed digest. A plain one could be reversed, because there are few possible codes.
    value = f"{conf.application().environment}/{code}"
    return ConnectRedemption(
        code_digest=salted_hmac(SALT, value, algorithm="sha256").hexdigest(),
        user_id=user.pk,
        expires_at=timezone.now() + CODE_LIFETIME,
    )


def _claim(redemption: ConnectRedemption, user: AbstractBaseUser) -> bool:
    """Claim the code for this request. Returns False if it was entered before.

    Raises ``FlowError`` after too many codes, ``LinkingRefused`` if the account waits for its
    erasure. An unsent code may be entered again.
    """
    ConnectRedemption.objects.filter(expires_at__lt=timezone.now()).delete()
    theirs = ConnectRedemption.objects.filter(user_id=user.pk)
    try:
        with database.atomic():
            # One after another, so that the count misses none that is being written.
            database.locked_account(user.pk)
            if withdrawal.waits_for_erasure(user.pk):
                raise exceptions.LinkingRefused(code="erasure_pending")
            # In a site that validates each row before it is saved, a repeat would be another error.
            if ConnectRedemption.objects.filter(
                code_digest=redemption.code_digest,
            ).exists():
                return False
            redemption.save(force_insert=True)
            if theirs.count() > MOST_TRIES:
                seconds = int(CODE_LIFETIME.total_seconds())
                raise exceptions.FlowError(code="too_many_tries", retry_after=seconds)
    except IntegrityError:
        return False
    return True


def _linked_before(
    entered: ConnectRedemption,
    user: AbstractBaseUser,
) -> LinkedIdentity:
    """What the code linked, only for the same user: a code does not prove who has it."""
    redemptions = ConnectRedemption.objects.filter(code_digest=entered.code_digest)
    first = redemptions.first()
    if first is None:
        raise exceptions.FlowError(code="connect_code_in_use")
    is_theirs = first.user_id == user.pk
    if is_theirs and not first.outcome:
        raise exceptions.FlowError(code="connect_code_in_use")

    if is_theirs and first.outcome == COMPLETED:
        identity = identity_of(user)
        if identity is not None and identity.consent == Consent.GRANTED:
            return identity
    if is_theirs and first.outcome == exceptions.InvalidConnectCode.code:
        # The service did not know the code: it is as wrong as the first time.
        raise exceptions.InvalidConnectCode("it was refused before")
    raise exceptions.FlowError(code="connect_code_used")


def _link(answer: ConnectAnswer, redemption: ConnectRedemption) -> LinkedIdentity:
    """Link the answer's subject to the user of the code. Raises the refusal."""
    is_accepted = policy.of_site().may_accept_connect_answer(answer)
    if not policy.is_yes(is_accepted, "may_accept_connect_answer"):
        raise exceptions.LinkingRefused(code="connect_answer_refused")
    request = LinkRequest(
        arrival=Arrival.CODE,
        user_id=redemption.user_id,
        began_at=redemption.created_at,
        # The service's clock may be ahead. A time from the future would outlast a revocation.
        said_at=min(answer.issued_at, timezone.now()),
        subject=answer.user_id,
        scopes=conf.application().connect_scopes,
        profile=answer.profile,
        kyc=answer.kyc,
    )
    return linking.link(request)


def _give_up(redemption: ConnectRedemption, error: exceptions.IdentityError) -> None:
    """Keep why the code failed. An unsent code may be entered again."""
    if not is_spent(error):
        row = ConnectRedemption.objects.filter(pk=redemption.pk)
        database.tried_again(row.delete)
        return
    number = redemption.request_id or error.request_id
    error.request_id = exceptions.shaped_code(number)
    _keep(redemption, outcome=error.code, request_id=number)


def _keep(redemption: ConnectRedemption, **columns: str) -> None:
    """Write these columns, unless the row is gone with its account."""
    redemption.set_columns(columns)
    row = ConnectRedemption.objects.filter(pk=redemption.pk)
    database.tried_again(partial(row.update, **columns))
