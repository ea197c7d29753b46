"""Calls to a service that misbehaves, for the tests of a good client."""

from __future__ import annotations

from typing import Any

from django.test import override_settings

from django_identity import conf
from django_identity.service import ServiceClient
from django_identity.service.budget import Priority
from tests.hostile import HostileService


def configured(service: HostileService, **changes: Any) -> override_settings:
    return override_settings(DJANGO_IDENTITY={"default": service.settings(**changes)})


def client(priority: Priority = Priority.INTERACTIVE) -> ServiceClient:
    return ServiceClient(conf.application(), priority=priority)


def read(priority: Priority = Priority.INTERACTIVE) -> None:
    client(priority).kyc("subject-1", access_token="at")
