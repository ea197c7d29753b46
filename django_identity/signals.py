"""What a site may listen to. Every signal is sent on commit, with keyword arguments only.

``identity`` is a ``LinkedIdentity``, ``user`` the site's user. A receiver that raises is logged by
Django and never undoes what happened.
"""

from __future__ import annotations

from django.db import transaction
from django.dispatch import Signal

#: A subject was bound to a user. Arguments: ``identity``, ``user``, ``created`` (a new user).
identity_linked = Signal()
#: The bond was taken away at the site. Arguments: ``user``, ``application``.
identity_unlinked = Signal()
#: Consent was given, or given anew. Arguments: ``identity``.
consent_granted = Signal()
#: Consent was taken back; gates are closed already. Arguments: ``identity``.
consent_revoked = Signal()
#: KYC level or status changed. Arguments: ``identity``.
kyc_changed = Signal()
#: The proven claims changed. Arguments: ``identity``.
claims_changed = Signal()
#: The grant is dead; the person's next visit offers renewal. Arguments: ``identity``.
reauthorization_needed = Signal()
#: A person was erased. Arguments: ``application``, ``receipt``.
data_erased = Signal()
#: An event was stored for the first time. Arguments: ``event``.
event_received = Signal()


def announce(signal: Signal, sender: type, **arguments: object) -> None:
    """Send ``signal`` once the transaction that is under way has committed."""
    transaction.on_commit(lambda: signal.send_robust(sender, **arguments), robust=True)
