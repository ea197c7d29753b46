"""``identity_doctor`` and the callback's deadline against the whole service, played locally."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.test import Client

from django_identity import conf
from django_identity.lifecycle.operators.doctor import Finding, Level, diagnose
from django_identity.lifecycle.upkeep import refetch_due
from django_identity.models import LinkedIdentity
from django_identity.testing.sandbox import RunningSandbox

pytestmark = pytest.mark.django_db(transaction=True)

SignIn = Callable[..., Any]


def problems() -> list[tuple[str, str]]:
    return [
        (finding.check, finding.remedy)
        for finding in diagnose()
        if finding.level is Level.PROBLEM and concerns_the_service(finding)
    ]


def concerns_the_service(finding: Finding) -> bool:
    return finding.check in ("key_set", "key", "clock", "credentials", "address", "issuer")


def change(settings: Any, **changes: Any) -> None:
    given = settings.DJANGO_IDENTITY
    settings.DJANGO_IDENTITY = {**given, "default": {**given["default"], **changes}}


def test_a_right_set_up_has_no_problem(
    client: Client, identity_application: conf.Application, identity_sign_in: SignIn
) -> None:
    """The service knows the client, and refuses what does not exist."""
    identity_sign_in(client)
    assert problems() == []
    answering = [finding.message for finding in diagnose() if finding.check == "address"]
    assert answering == ["default: AUTH_URL answers", "default: BASE_URL answers"]


@pytest.mark.parametrize(
    ("changes", "check", "remedy"),
    [
        ({"CLIENT_SECRET": "not-the-secret-of-the-client"}, "credentials", "CLIENT_SECRET"),
        ({"CLIENT_ID": "nobody-s-client"}, "credentials", "CLIENT_ID"),
    ],
)
def test_wrong_credentials(
    identity_application: conf.Application, settings: Any, changes: Any, check: str, remedy: str
) -> None:
    change(settings, **changes)
    [(found, what)] = problems()
    assert found == check
    assert remedy in what


@pytest.mark.parametrize("setting", ["AUTH_URL", "BASE_URL"])
def test_wrong_paths(
    identity_application: conf.Application, identity_sandbox: RunningSandbox, settings: Any,
    setting: str,
) -> None:  # fmt: skip
    parts = urlsplit(identity_sandbox.base_url)
    origin = f"{parts.scheme}://{parts.netloc}"
    change(settings, API_ORIGIN=origin, **{setting: f"{origin}/elsewhere/api/v1"})
    [(found, what)] = problems()
    assert found == "address"
    assert setting in what


def test_the_same_service_by_another_name(
    client: Client,
    identity_application: conf.Application,
    identity_sandbox: RunningSandbox,
    identity_sign_in: SignIn,
    settings: Any,
) -> None:
    """Its keys are there too, but its credentials name the issuer as the service does."""
    identity_sign_in(client)
    other = identity_application.api_origin.replace("127.0.0.1", "localhost")
    change(settings, API_ORIGIN=other)
    [(found, what)] = problems()
    assert (found, "API_ORIGIN" in what) == ("issuer", True)


def test_claims_that_take_too_long_are_left_to_upkeep(
    client: Client,
    identity_application: conf.Application,
    identity_sandbox: RunningSandbox,
    identity_sign_in: SignIn,
    settings: Any,
) -> None:
    """The person is in, and the gate opens with the next re-fetch."""
    change(settings, CALLBACK_SECONDS=1.0)
    identity_sandbox.control("POST", "faults", endpoint="claims", kind="delay", seconds=2)
    identity_sign_in(client)
    assert LinkedIdentity.objects.get().credential == ""
    list(refetch_due())
    assert LinkedIdentity.objects.get().credential != ""
