"""What this site decides: its name, and why it asks for what it asks."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _

from django_identity.policy import IdentityPolicy


class CirclePolicy(IdentityPolicy):
    site_name = "Ajo Circle"
    reasons = {
        "age_over_18": _("A circle is a contract, so everybody in it is an adult."),
        "country_resident=NG": _("Naira circles pay out in Nigeria."),
        "level_2": _("Borrowing ahead of your turn needs the stricter verification."),
        "documents:read": _(
            "This page shows your documents to you, and we do not keep them.",
        ),
        "recent_sign_in": _(
            "Whoever leaves a circle gives up their seat and their turn.",
        ),
    }
