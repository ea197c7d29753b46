"""What this site writes to a new account."""

from collections.abc import Mapping
from typing import Any

from django_identity.policy import IdentityPolicy


class Policy(IdentityPolicy):
    def new_user_fields(self, *, profile: Any, kyc: Any) -> Mapping[str, Any]:
        return {
            **super().new_user_fields(profile=profile, kyc=kyc),
            "country": profile.country,
        }
