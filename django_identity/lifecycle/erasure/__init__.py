"""Erase a person and keep a receipt without personal data.

``erasure`` erases in one transaction, ``dossier`` lists all tables with personal data, ``preview``
counts what would go, ``disconnection`` deletes a link, ``sessions`` finds and ends a person's
sessions, ``retention`` purges old data.
"""

from django_identity.lifecycle.erasure.disconnection import disconnect
from django_identity.lifecycle.erasure.dossier import dossier_of, export_of
from django_identity.lifecycle.erasure.erasure import application_of_rows, erase_now
from django_identity.lifecycle.erasure.preview import (
    AccountFate,
    Preview,
    preview_of,
    sessions_ended_by,
)
from django_identity.lifecycle.erasure.retention import BATCH, count_purgeable, purge
from django_identity.lifecycle.erasure.sessions import BEGAN_KEY as SESSION_BEGAN_KEY
from django_identity.lifecycle.erasure.sessions import can_end as can_end_sessions
from django_identity.lifecycle.erasure.sessions import end_all as end_all_sessions
from django_identity.lifecycle.erasure.sessions import end_one as end_session
from django_identity.lifecycle.erasure.sessions import listed as sessions_of

__all__ = [
    "BATCH",
    "SESSION_BEGAN_KEY",
    "AccountFate",
    "Preview",
    "application_of_rows",
    "can_end_sessions",
    "count_purgeable",
    "disconnect",
    "dossier_of",
    "end_all_sessions",
    "end_session",
    "erase_now",
    "export_of",
    "preview_of",
    "purge",
    "sessions_ended_by",
    "sessions_of",
]
