"""Webhook events: stored once and applied once, in one transaction.

``intake`` checks and stores a delivery · ``effects`` what each type of event changes · ``consent``
how consent ends · ``events_meanwhile`` the events that came in during a sign-in · ``rows`` stored
events · ``receipts`` erasure receipts · ``locks`` the locking order
"""

from django_identity.lifecycle.events.consent import revoke
from django_identity.lifecycle.events.intake import Intake, receive
from django_identity.lifecycle.events.locks import lock_subject

__all__ = ["Intake", "lock_subject", "receive", "revoke"]
