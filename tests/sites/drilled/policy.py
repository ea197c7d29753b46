"""The shop's policy, and how it is broken."""

from typing import Any

from django.conf import settings

from django_identity.policy import IdentityPolicy


class ShopPolicy(IdentityPolicy):
    def may_sign_up(self, *, claims: Any, **_: Any) -> bool:
        return "adults" not in settings.SITE_BREAKS or "age_over_18" in claims

    def claim_value(self, claim_type: str, value: Any) -> str | None:
        if "claim_value" in settings.SITE_BREAKS:
            return "PT"
        return super().claim_value(claim_type, value)

    def erase_user(self, user: Any) -> None:
        from tests.sites.drilled.models import Order  # noqa: PLC0415  the models are ready now

        if "row" not in settings.SITE_BREAKS:
            Order.objects.filter(user=user).update(name="")
        super().erase_user(user)
