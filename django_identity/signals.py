"""Signals for the site. Each signal is sent after the commit, with keyword arguments only.

``identity`` is a ``LinkedIdentity``, ``user`` the site's user. If a receiver raises an error,
Django logs the error, and nothing is rolled back.
"""

from django.dispatch import Signal

from django_identity import database

#: A subject was linked to a user. Arguments: ``identity``, ``user``, ``created`` (a new user).
identity_linked = Signal()
#: An identity is gone: disconnected, erased, or deleted by the site. Arguments: ``user``, the
#: account as it is stored now (of a deleted one the key alone).
identity_unlinked = Signal()
#: All identity sessions of a person ended: by a revocation, a disconnection, an erasure, a deletion
#: by the site, or "Sign out everywhere". End your own tokens here. Arguments: ``user``, as above.
sessions_ended = Signal()
#: Consent was granted, or granted again. Arguments: ``identity``.
consent_granted = Signal()
#: Consent was revoked; the gates are closed already. Arguments: ``identity``.
consent_revoked = Signal()
#: The KYC level or status changed. Arguments: ``identity``.
kyc_changed = Signal()
#: The proven claims changed. Arguments: ``identity``.
claims_changed = Signal()
#: The grant is dead; the person has to sign in again. Arguments: ``identity``.
reauthorization_needed = Signal()
#: A person was erased. Arguments: ``receipt``.
data_erased = Signal()
#: An event was stored for the first time. Arguments: ``event``.
event_received = Signal()


def announce(signal: Signal, sender: type, **arguments: object) -> None:
    """Send ``signal`` when the current transaction has committed."""
    database.on_commit(lambda: signal.send_robust(sender, **arguments))


def announce_end(signal: Signal, sender: type, *, user_id: object) -> None:
    """The same for the end of something of an account, which is read after the commit.

    A receiver may save the user. An instance of before would store the person again whom the
    transaction has erased.
    """

    def send() -> None:
        if signal.has_listeners(sender):
            user = database.account(user_id)
            signal.send_robust(sender, user=user)

    database.on_commit(send)
