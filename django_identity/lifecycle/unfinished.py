"""Sign-ups and links that never came to their end: what their first step wrote is taken back.

``linking`` writes a new identity in two steps. If the second one is refused, it takes back at once
what the first one wrote. If the process dies in between, upkeep does so later: an identity without
consent, and an account that nobody asked for any more.
"""

from datetime import timedelta

from django.contrib.auth.models import AbstractBaseUser
from django.utils import timezone

from django_identity import database, policy
from django_identity.event_types import Effect, types_of
from django_identity.lifecycle import attempts, effects, withdrawal
from django_identity.lifecycle.attempts import Stop
from django_identity.logs import LogEvent, log, log_trouble, models_in_the_way
from django_identity.models import Consent, EventOutcome, LinkedIdentity, WebhookEvent

#: For so long a sign-in may last. Before that its second step may still come.
LONGEST_SIGN_IN = timedelta(hours=1)


def take_back_old(*, stop: Stop = lambda: False) -> None:
    """Take back what was never granted, and is older than a sign-in may last."""
    too_old = timezone.now() - LONGEST_SIGN_IN
    left = LinkedIdentity.objects.filter(consent=Consent.REVOKED, revoked_at=None)
    digests = left.filter(created_at__lt=too_old).values_list(
        "subject_digest", flat=True
    )
    for subject_digest in list(digests.order_by("created_at")[: attempts.MOST_AT_ONCE]):
        if stop():
            return
        try:
            _take_back_old(subject_digest)
        except Exception as error:  # noqa: BLE001  one row must not stop the others
            log_trouble(LogEvent.ERASURE_FAILED, error)


def take_back(empty: LinkedIdentity) -> None:
    """Delete what the first step has just made, unless somebody has filled it meanwhile.

    A refused sign-up leaves no account, whatever the site has put into it when it was made. An
    error is only logged: the caller raises the refusal, and upkeep tries again.
    """
    try:
        with database.atomic():
            locked = LinkedIdentity.objects.locked_row(empty)
            if locked is None or not locked.was_never_granted:
                return
            withdrawal.delete(locked)
            if empty.made_its_account:
                _remove(withdrawal.user_of(locked))
    except Exception as error:  # noqa: BLE001  an emptied link opens nothing
        _log_trouble(error, empty)


def _take_back_old(subject_digest: str) -> None:
    with database.atomic():
        identity = LinkedIdentity.objects.locked(subject_digest)
        if identity is None or not identity.was_never_granted:
            return
        if withdrawal.is_being_erased(identity) or _was_deleted(identity):
            return
        user = withdrawal.user_of(identity)
        reason = _why_it_stays(user, identity)
        withdrawal.delete(identity)
        if not reason:
            reason = _delete_account(user, identity)
    account = "deleted"
    if reason:
        account = f"kept:{reason}"
    log(
        LogEvent.TAKEN_BACK,
        row=identity.pk,
        account=account,
    )


def _was_deleted(identity: LinkedIdentity) -> bool:
    """Whether a deletion came while the person signed up. It found nobody, and is due now.

    It is applied as if it had come later, with a receipt, and the erasure does the rest.
    """
    since = identity.created_at - LONGEST_SIGN_IN
    asked = WebhookEvent.objects.of_subject_since(identity.subject_digest, since)
    asked = asked.filter(event_type__in=types_of(Effect.ERASE)).exclude(outcome="")
    event = asked.select_for_update().order_by("-occurred_at").first()
    if event is None:
        return False
    event.outcome = effects.outcome_of(identity, event)
    event.save(update_fields=["outcome"])
    return event.outcome == EventOutcome.APPLIED


def _why_it_stays(user: AbstractBaseUser, identity: LinkedIdentity) -> str:
    """Why the account stays, or an empty text if the unfinished sign-up made it for itself."""
    if not identity.made_its_account:
        return "older"
    if policy.is_privileged(user):
        return "staff"
    if user.has_usable_password():
        return "password"
    if not user.is_active:
        # The site's people have to approve it, or have disabled it.
        return "inactive"
    if getattr(user, "last_login", None) is not None:
        return "used"
    return ""


def _delete_account(user: AbstractBaseUser, identity: LinkedIdentity) -> str:
    """Delete the account. Returns why it stays, if the site protects it."""
    try:
        with database.atomic(), database.checked_references():
            _remove(user)
    except Exception as error:  # noqa: BLE001  the site's own rules may raise anything
        _log_trouble(error, identity)
        return "protected"
    return ""


def _remove(user: AbstractBaseUser) -> None:
    """Delete the row of an account that nobody has used, even if ``delete`` only hides it.

    Else its address would be taken, by an account that nobody can get into.
    """
    key = user.pk
    user.delete()
    database.all_users().filter(pk=key).delete()


def _log_trouble(error: Exception, identity: LinkedIdentity) -> None:
    log_trouble(
        LogEvent.ERASURE_FAILED,
        error,
        row=identity.pk,
        models=models_in_the_way(error),
    )
