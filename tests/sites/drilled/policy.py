"""The shop's policy, and how it is broken."""

from typing import Any

from django.conf import settings

from django_identity.policy import IdentityPolicy


class ShopPolicy(IdentityPolicy):
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
