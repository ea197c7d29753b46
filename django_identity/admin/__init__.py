"""The admin pages for operators, with one module for each entry of the admin's index.

``listing`` has the common base class, ``filters`` the filters of the lists, ``wording`` the texts,
``actions`` the actions on identities, ``charts`` the charts of the overview.
"""

from django_identity.admin import events, identities, overview, receipts

__all__ = ["events", "identities", "overview", "receipts"]
