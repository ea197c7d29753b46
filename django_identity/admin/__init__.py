"""The admin pages for operators, with one module for each entry of the admin's index.

``listing`` has the common base class, ``filters`` the filters of the lists, ``actions`` the actions
on identities. The texts are in ``texts.operators``, the charts in ``instruments.signs.charts``.
"""

from django_identity.admin import events, identities, overview, receipts

__all__ = ["events", "identities", "overview", "receipts"]
