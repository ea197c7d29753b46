"""Claim types and refusals in words."""

from django.utils.translation import gettext_lazy as _

from django_identity.sandbox.connect.policy import Requirement
from django_identity.sandbox.consents.scopes import Text
from django_identity.sandbox.server import envelope

_REFUSALS: dict[str, Text] = {
    Requirement.KYC_LEVEL: _("a higher verification level is required"),
    Requirement.PROOF_OF_ADDRESS: _("proof of address is required"),
    envelope.ENVIRONMENT_MISMATCH: _("the application belongs to the other environment"),
}

CLAIMS: dict[str, Text] = {
    "kyc_verified": _("Identity verified"),
    "age_over_18": _("18 or older"),
    "country_resident": _("Country of residence"),
    "unique_human": _("Unique person"),
}


def refusal_reason(error_code: str) -> Text:
    """Return in words why a Connect code gave an application nothing."""
    return _REFUSALS.get(error_code, error_code)


def claim_title(claim_type: str) -> Text:
    return CLAIMS.get(claim_type, claim_type)
