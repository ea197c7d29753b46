"""What this site decides: its name, and why it asks for what it asks."""

from __future__ import annotations

from django.http import HttpRequest
from django.utils.translation import gettext as _

from django_identity.policy import IdentityPolicy


class CirclePolicy(IdentityPolicy):
    def site_name(self, request: HttpRequest | None) -> str:
        return "Ajo Circle"

    def why_we_ask(self, asked: str) -> str:
        reasons = {
            "age_over_18": _("A circle is a contract, so everybody in it is an adult."),
            "country_resident=NG": _("Naira circles pay out in Nigeria."),
            "level_2": _("Borrowing ahead of your turn needs the stricter verification."),
        }
        return reasons.get(asked, "")
