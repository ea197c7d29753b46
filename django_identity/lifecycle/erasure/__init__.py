"""Everything about a person goes, and a receipt without them stays.

``erasure`` does it in one transaction, ``dossier`` is the one list of where a person's data is,
``sessions`` finds and ends their sessions, ``retention`` purges what grew old.
"""

from django_identity.lifecycle.erasure.dossier import dossier_of, export_of
from django_identity.lifecycle.erasure.erasure import erase_now
from django_identity.lifecycle.erasure.retention import BATCH, count_purgeable, purge

__all__ = ["BATCH", "count_purgeable", "dossier_of", "erase_now", "export_of", "purge"]
