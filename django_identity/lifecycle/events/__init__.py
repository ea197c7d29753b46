"""Webhook events: stored once and applied once, in one transaction.

``intake`` checks and stores a delivery · ``effects`` what each type of event changes · ``consent``
how consent ends · ``events_meanwhile`` the events that came in during a sign-in · ``rows`` stored
events · ``receipts`` erasure receipts · ``locks`` the locking order
"""

from django_identity.lifecycle.events.consent import revoke
from django_identity.lifecycle.events.effects import CLOCK_SKEW
from django_identity.lifecycle.events.intake import receive
from django_identity.lifecycle.events.locks import lock_subject

__all__ = ["CLOCK_SKEW", "lock_subject", "receive", "revoke"]
