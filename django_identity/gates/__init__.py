"""Gates: open a view only to people with proven claims, a KYC level, a scope or a fresh sign-in.

::

    @claim_required("age_over_18")
    def bar(request): ...

    @claim_required("age_over_18", "country_resident=PT|FR", on_closed="forbid")
    async def local_offer(request): ...

    class Vault(KycLevelRequiredMixin, TemplateView):
        required_kyc_level = "level_2"

    @recent_sign_in_required(minutes=10)
    def payout(request): ...

``gate``: a gate, and to whom it is open · ``closed``: the answers of a closed gate · ``decorators``
and ``mixins``: gates around views
"""

from django_identity.gates.closed import Closed, closed_response
from django_identity.gates.decorators import (
    claim_required,
    kyc_level_required,
    recent_sign_in_required,
    scope_required,
)
from django_identity.gates.gate import (
    Gate,
    aclaims_of,
    aclosed_to,
    claims_of,
    claims_of_all,
    closed_to,
)
from django_identity.gates.mixins import (
    ClaimRequiredMixin,
    KycLevelRequiredMixin,
    RecentSignInRequiredMixin,
    ScopeRequiredMixin,
)

__all__ = [
    "ClaimRequiredMixin",
    "Closed",
    "Gate",
    "KycLevelRequiredMixin",
    "RecentSignInRequiredMixin",
    "ScopeRequiredMixin",
    "aclaims_of",
    "aclosed_to",
    "claim_required",
    "claims_of",
    "claims_of_all",
    "closed_response",
    "closed_to",
    "kyc_level_required",
    "recent_sign_in_required",
    "scope_required",
]
