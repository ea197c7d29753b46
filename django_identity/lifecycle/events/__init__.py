"""Webhook events: stored once and applied once, in one transaction.

``intake`` verifies and stores; ``effects`` and ``consent`` are the table of what an event changes;
``events_meanwhile`` is what a sign-in has to obey that came in while it was under way.
"""

from django_identity.lifecycle.events.intake import receive

__all__ = ["receive"]
