"""A redemption of a Connect code without a page around it."""

from django.contrib.auth.models import User

from django_identity.lifecycle.arriving import connect
from django_identity.models import LinkedIdentity
from tests import fake_service

INVALID = fake_service.answer(
    {"success": False, "error": {"code": "INVALID_CONNECT_CODE"}},
    status="400 Bad Request",
)


def redeem(user: User, number: int = 0) -> LinkedIdentity:
    return connect.redeem(f"CNX-AB12-{number:04}", user=user)
