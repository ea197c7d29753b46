"""The shop's policy, and how it is broken."""

from typing import Any

from django.conf import settings
from django.utils import timezone

from django_identity.policy import IdentityPolicy

#: Twelve hours from now the shop signs nobody in.
SHUT_AT = (timezone.now().hour + 12) % 24


class ShopPolicy(IdentityPolicy):
    def may_sign_up(self, *, claims: Any, **_: Any) -> bool:
        return "adults" not in settings.SITE_BREAKS or "age_over_18" in claims

    def may_sign_in(self, user: Any, *, claims: Any) -> bool:
        return "hour" not in settings.SITE_BREAKS or timezone.now().hour != SHUT_AT

    def claim_value(self, claim_type: str, value: Any) -> str | None:
        if "claim_value" in settings.SITE_BREAKS:
            return "PT"
        return super().claim_value(claim_type, value)

    def erase_user(self, user: Any) -> None:
        from tests.sites.drilled.models import Letter, Order  # noqa: PLC0415  the models are ready

        breaks, name = settings.SITE_BREAKS, user.first_name
        letters = Letter.objects.filter(
            email__in=[user.email, f"nobody-{user.pk}@shop.example"]
        )
        if "deleted" in breaks:
            letters.delete()
            user.delete()
            return
        if "unique" in breaks:
            letters.update(email="erased@shop.example")
        else:
            letters.delete()
        Order.objects.filter(user=user).update(name="")
        super().erase_user(user)
        if "name" in breaks:
            type(user).objects.filter(pk=user.pk).update(first_name=name)
