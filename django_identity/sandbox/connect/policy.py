"""The verification policy of an application for Connect codes."""

from enum import StrEnum

from django_identity.sandbox.models import Application, KycLevel, User

_LEVELS = list(KycLevel)


class Requirement(StrEnum):
    """A requirement that a person may not meet, as an error code."""

    KYC_LEVEL = "KYC_LEVEL_REQUIRED"
    PROOF_OF_ADDRESS = "POA_REQUIRED"


def change(application: Application, *, kyc_level: KycLevel, proof_of_address: bool) -> Application:
    """Set the policy of ``application``, for both of its credential sets."""
    application.connect_kyc_level = kyc_level
    application.connect_proof_of_address = proof_of_address
    application.save(update_fields=["connect_kyc_level", "connect_proof_of_address"])
    return application


def unmet(application: Application, user: User) -> Requirement | None:
    """Return the first requirement of ``application`` that ``user`` does not meet."""
    required = KycLevel(application.connect_kyc_level)
    if _LEVELS.index(user.kyc_level) < _LEVELS.index(required):
        return Requirement.KYC_LEVEL
    if application.connect_proof_of_address and user.address_proved_at is None:
        return Requirement.PROOF_OF_ADDRESS
    return None
