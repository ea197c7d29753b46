"""Signals for the site. Each signal is sent after the commit, with keyword arguments only.

``identity`` is a ``LinkedIdentity``, ``user`` the site's user. If a receiver raises an error, all
changes stay, and the log gets the error's class and place.
"""

import logging

from django.dispatch import Signal

from django_identity import database
from django_identity.logs import LogEvent, log_trouble


class _Announced(Signal):
    """A signal of this package."""


def _log_as_text(record: logging.LogRecord) -> bool:
    """A filter of Django's log, which keeps message and variables of a receiver's error."""
    error = (record.exc_info or (None, None))[1]
    if not isinstance(error, Exception) or error.__traceback__ is None:
        return True
    # The first frame is Django's, which called the receiver.
    if not isinstance(error.__traceback__.tb_frame.f_locals.get("self"), _Announced):
        return True
    log_trouble(LogEvent.UNEXPECTED, error)
    return False


logging.getLogger("django.dispatch").addFilter(_log_as_text)

#: A subject was linked to a user. Arguments: ``identity``, ``user``, ``created`` (a new user).
identity_linked = _Announced()
#: An identity is gone: disconnected, erased, or deleted by the site. Arguments: ``user``, the
#: account as it is stored now (of a deleted one the key alone).
identity_unlinked = _Announced()
#: All identity sessions of a person ended: by a revocation, a disconnection, an erasure, a deletion
#: by the site, or "Sign out everywhere". End your own tokens here. Arguments: ``user``, as above.
sessions_ended = _Announced()
#: Consent was granted, or granted again. Arguments: ``identity``.
consent_granted = _Announced()
#: Consent was revoked; the gates are closed already. Arguments: ``identity``.
consent_revoked = _Announced()
#: The KYC level or status changed. Arguments: ``identity``.
kyc_changed = _Announced()
#: The proven claims may have changed. Arguments: ``identity``.
claims_changed = _Announced()
#: The grant is dead; the person has to sign in again. Arguments: ``identity``.
reauthorization_needed = _Announced()
#: A person was erased. Arguments: ``receipt``, ``user``, as above.
data_erased = _Announced()
#: An event was stored for the first time. Arguments: ``event``.
event_received = _Announced()


def announce(signal: Signal, sender: type, **arguments: object) -> None:
    """Send ``signal`` when the current transaction has committed."""
    database.on_commit(lambda: signal.send_robust(sender, **arguments))


def announce_end(
    signal: Signal,
    sender: type,
    *,
    user_id: object,
    **arguments: object,
) -> None:
    """The same for the end of something of an account, which is read after the commit.

    A receiver may save the user. An instance of before would store the person again whom the
    transaction has erased.
    """

    def send() -> None:
        if signal.has_listeners(sender):
            user = database.account(user_id)
            signal.send_robust(sender, user=user, **arguments)

    database.on_commit(send)
