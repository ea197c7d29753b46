"""The admin: what operators see and may do. One module for each entry of the admin's index.

``listing`` is what the lists have in common, ``filters`` and ``wording`` their choices and words,
``actions`` what may be done to identities, ``charts`` the overview's drawings.
"""

from __future__ import annotations

from django_identity.admin import events, identities, overview, receipts

__all__ = ["events", "identities", "overview", "receipts"]
