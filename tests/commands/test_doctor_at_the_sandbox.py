"""``identity_doctor`` and the callback's deadline against the whole service, played locally."""

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from django_identity import conf
from django_identity.lifecycle.operators.doctor import Finding, Level, diagnose

pytestmark = pytest.mark.django_db(transaction=True)

SignIn = Callable[..., Any]


def problems() -> list[tuple[str, str]]:
    return [
        (finding.check, finding.remedy)
        for finding in diagnose()
        if finding.level is Level.PROBLEM and concerns_the_service(finding)
    ]


def concerns_the_service(finding: Finding) -> bool:
    return finding.check in ("key_set", "clock", "credentials", "address")


def test_a_right_set_up_has_no_problem(
    client: Client, identity_application: conf.Application, identity_sign_in: SignIn
) -> None:
    """The service knows the client, and refuses what does not exist."""
    assert identity_sign_in(client).status_code == 302
    assert problems() == []
    answering = [finding.message for finding in diagnose() if finding.check == "address"]
    assert answering == ["default: AUTH_URL answers", "default: BASE_URL answers"]
