"""``ServiceClient.redeem_connect_code``, asked of a service that may misbehave."""

from __future__ import annotations

from typing import Any

from django.test import override_settings

from django_identity import conf
from django_identity.service import ServiceClient
from django_identity.service.connect import ConnectAnswer
from tests import fake_service
from tests.fake_service import FakeService

CODE = "CNX-AB12-CD34"


SCOPES = ("profile:basic", "kyc:status")


def redeem(service: FakeService, **settings: Any) -> ConnectAnswer:
    with override_settings(DJANGO_IDENTITY={"default": service.settings(**settings)}):
        return ServiceClient(conf.application()).redeem_connect_code(CODE, SCOPES)


def refusal(code: str, status: str = "400 Bad Request", **beside: object) -> bytes:
    body = {"success": False, "error": {"code": code, "message": "No."}, **beside}
    return fake_service.answer(body, status=status)
