"""Erase a person and keep a receipt without personal data.

``erasure`` erases in one transaction, ``dossier`` lists all tables with personal data, ``sessions``
finds and ends a person's sessions, ``retention`` purges old data.
"""

from django_identity.lifecycle.erasure.dossier import dossier_of, export_of
from django_identity.lifecycle.erasure.erasure import application_of_rows, erase_now
from django_identity.lifecycle.erasure.retention import BATCH, count_purgeable, purge

__all__ = [
    "BATCH",
    "application_of_rows",
    "count_purgeable",
    "dossier_of",
    "erase_now",
    "export_of",
    "purge",
]
