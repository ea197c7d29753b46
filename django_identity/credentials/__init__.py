"""Verify a credential (SD-JWT) offline with the service's published keys.

The functions are pure: their arguments are all that they read. ``verify`` takes a ``KeySet`` and
returns a ``VerifiedCredential``. All checks in their order: ``exceptions.rejections``. ``sdjwt``
runs them. What is stored of a credential: ``lifecycle.said.claims``.
"""

from django_identity.credentials.keys import KeySet
from django_identity.credentials.sdjwt import verify
from django_identity.credentials.verified import VerifiedCredential
from django_identity.exceptions.rejections import RejectionReason

__all__ = ["KeySet", "RejectionReason", "VerifiedCredential", "verify"]
