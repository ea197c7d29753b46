"""The mail that tells the account's owner of a new link, so that they hear of one they never made.

A sign-in never waits for the mail server longer than ``LONGEST_WAIT`` and never fails with it.
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
from django_identity.telemetry import LogEvent, log_trouble

LONGEST_WAIT = 1.0


def send_on_commit(
    application: Application, identity: LinkedIdentity, *, user: AbstractBaseUser, profile: Profile
) -> None:
    """Send the policy's notice once the link is committed; a failure is logged."""
    person = profile.masked()
    # Not a partial: Django looks for the name of one that fails, and fails itself.
    transaction.on_commit(lambda: _tell(application, identity, user, person), robust=True)


def _tell(
    application: Application, identity: LinkedIdentity, user: AbstractBaseUser, person: str
) -> None:
    """Make the mail here, in the person's language; send it in a thread, for servers are slow."""
    try:
        notice = policy.load(application.policy).link_notice(user, identity, person=person)
    except Exception as error:  # noqa: BLE001  the site's own code; the link stands
        log_trouble(LogEvent.LINK_NOTICE_FAILED, error, application=application.alias)
        return
    if notice is None:
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
        # A mail backend may keep its mails in the database; this thread ends with its connections.
        connections.close_all()
