"""The proof: verify a credential (SD-JWT) offline with the service's published keys.

Pure functions: no HTTP, no database, no settings. ``verify`` is the way in, ``KeySet`` holds the
keys it may use, ``VerifiedCredential`` is what was proven, ``RejectionReason`` why it was not.
``docs/credentials.md`` lists every check.
"""

from django_identity.credentials.keys import KeySet
from django_identity.credentials.reasons import RejectionReason
from django_identity.credentials.sdjwt import verify
from django_identity.credentials.verified import VerifiedCredential

__all__ = ["KeySet", "RejectionReason", "VerifiedCredential", "verify"]
