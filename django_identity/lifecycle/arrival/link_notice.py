"""The e-mail that tells the account's owner about a new link.

A sign-in waits for the mail server at most ``LONGEST_WAIT``, and does not fail if the server fails.
"""

from __future__ import annotations

import threading

from django.contrib.auth.models import AbstractBaseUser
from django.core.mail import EmailMessage
from django.db import connections, transaction

from django_identity import policy
from django_identity.conf import Application
from django_identity.models import LinkedIdentity
from django_identity.service.messages import Profile
from django_identity.telemetry import LogEvent, log_refusal, log_trouble

LONGEST_WAIT = 1.0
MOST_AT_ONCE = 16
# The limit of threads, because a mail server that never answers blocks each of them.
_slots = threading.BoundedSemaphore(MOST_AT_ONCE)


def send_on_commit(
    application: Application, identity: LinkedIdentity, *, user: AbstractBaseUser, profile: Profile
) -> None:
    """Send the policy's notice after the commit. A failure is logged."""
    person = profile.masked()
    # Not a partial: Django logs the function's name if the function raises, and a partial has none.
    transaction.on_commit(lambda: _tell(application, identity, user, person), robust=True)


def _tell(
    application: Application, identity: LinkedIdentity, user: AbstractBaseUser, person: str
) -> None:
    """Build the e-mail here, in the person's language, and send it in a thread."""
    try:
        notice = policy.load(application.policy).link_notice(user, identity, person=person)
    except Exception as error:  # noqa: BLE001  the site's own code; the link stands
        log_trouble(LogEvent.LINK_NOTICE_FAILED, error, application=application.alias)
        return
    if notice is None:
        return
    if not _slots.acquire(blocking=False):
        log_refusal(LogEvent.LINK_NOTICE_FAILED, application=application.alias, error="busy")
        return
    name = "django-identity-link-notice"
    sending = threading.Thread(target=_send, args=(notice, application), name=name, daemon=True)
    sending.start()
    sending.join(LONGEST_WAIT)


def _send(notice: EmailMessage, application: Application) -> None:
    try:
        notice.send()
    except Exception as error:  # noqa: BLE001  any mail backend's own errors
        log_trouble(LogEvent.LINK_NOTICE_FAILED, error, application=application.alias)
    finally:
        # A mail back end may use the database, so close this thread's connections.
        connections.close_all()
        _slots.release()
