"""A redemption of a Connect code without a page around it."""

from __future__ import annotations

from django.contrib.auth.models import User

from django_identity import conf
from django_identity.lifecycle.arrival import connect
from tests import hostile

ADDRESS = "192.0.2.1"
INVALID = hostile.answer(
    {"success": False, "error": {"code": "INVALID_CONNECT_CODE"}}, status="400 Bad Request"
)


def redeem(user: User, number: int = 0, address: str = ADDRESS) -> connect.Redeemed:
    return connect.redeem(conf.application(), f"CNX-AB12-{number:04}", user=user, address=address)
