"""The service's answers as frozen values, parsed and bounded once. Each ``parse`` raises
``MalformedAnswer`` for what it cannot use.

``people`` tokens, profile, KYC · ``claims`` · ``connect`` · ``documents`` of the trusted tier ·
``developer`` secrets and test users · ``members`` reads the members of all of them
"""

from django_identity.service.answers.claims import ClaimsAnswer, ClaimsVerdict, ListedClaim
from django_identity.service.answers.connect import ConnectAnswer
from django_identity.service.answers.developer import NewTestUser, RotatedSecret
from django_identity.service.answers.documents import DocumentMetadata, SealedDocument
from django_identity.service.answers.people import KycStatus, Profile, TokenAnswer

__all__ = [
    "ClaimsAnswer",
    "ClaimsVerdict",
    "ConnectAnswer",
    "DocumentMetadata",
    "KycStatus",
    "ListedClaim",
    "NewTestUser",
    "Profile",
    "RotatedSecret",
    "SealedDocument",
    "TokenAnswer",
]
