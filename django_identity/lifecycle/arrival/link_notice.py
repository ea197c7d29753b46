"""The e-mails that tell the account's owner about a link and its changes.

A sign-in waits for the mail server at most ``LONGEST_WAIT``, and does not fail if the server fails.
"""

import threading
from collections.abc import Callable, Sequence

from django.contrib.auth.models import AbstractBaseUser
from django.core.mail import EmailMessage
from django.db import connections

from django_identity import database, policy
from django_identity.conf import Application
from django_identity.models import LinkedIdentity
from django_identity.service.answers import Profile
from django_identity.telemetry import LogEvent, log_refusal, log_trouble
from django_identity.texts.advice import service_in_sentence

Build = Callable[[policy.IdentityPolicy], EmailMessage | None]

LONGEST_WAIT = 1.0
MOST_AT_ONCE = 16
# The limit of threads, because a mail server that never answers blocks each of them.
_slots = threading.BoundedSemaphore(MOST_AT_ONCE)


def send_on_commit(
    application: Application, identity: LinkedIdentity, *, user: AbstractBaseUser, profile: Profile
) -> None:
    """Send the policy's notice of a new link after the commit. A failure is logged."""
    person = profile.masked()
    # Not a partial: Django logs the function's name if the function raises, and a partial has none.
    database.on_commit(
        lambda: _tell(application, [lambda site: site.link_notice(user, identity, person=person)])
    )


def send_change_on_commit(
    application: Application, users: Sequence[AbstractBaseUser], *, change: str
) -> None:
    """Send the policy's notice of a change to each of ``users`` after the commit."""
    facts = {"change": change, "service": service_in_sentence(application.service_name)}
    builds = [lambda site, user=user: site.change_notice(user, **facts) for user in users]
    database.on_commit(lambda: _tell(application, builds))


def _tell(application: Application, builds: Sequence[Build]) -> None:
    """Build the e-mails here, in the person's language, and send them in a thread."""
    try:
        site = policy.load(application.policy)
        notices = [notice for build in builds if (notice := build(site)) is not None]
    except Exception as error:  # noqa: BLE001  the site's own code; the change stands
        log_trouble(LogEvent.LINK_NOTICE_FAILED, error, application=application.alias)
        return
    if not notices:
        return
    if not _slots.acquire(blocking=False):
        log_refusal(LogEvent.LINK_NOTICE_FAILED, application=application.alias, error="busy")
        return
    name = "django-identity-link-notice"
    sending = threading.Thread(target=_send, args=(notices, application), name=name, daemon=True)
    sending.start()
    sending.join(LONGEST_WAIT)


def _send(notices: Sequence[EmailMessage], application: Application) -> None:
    try:
        for notice in notices:
            notice.send()
    except Exception as error:  # noqa: BLE001  any mail backend's own errors
        log_trouble(LogEvent.LINK_NOTICE_FAILED, error, application=application.alias)
    finally:
        # A mail back end may use the database, so close this thread's connections.
        connections.close_all()
        _slots.release()
