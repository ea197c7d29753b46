"""A redemption that the service says yes to: every member is checked, or nothing is taken."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.test import override_settings

from django_identity import conf
from django_identity.exceptions import (
    MalformedAnswer,
    ServiceError,
    SubjectMismatch,
)
from django_identity.service import ServiceClient
from tests.fake_service import FakeService, serving
from tests.service.connect_calls import CODE, redeem


@pytest.fixture
def service() -> Iterator[FakeService]:
    with serving() as running:
        yield running


WITHOUT = object()


def changed(result: dict[str, Any], path: str, value: object) -> dict[str, Any]:
    *parents, last = path.split(".")
    place = result
    for parent in parents:
        place = place[parent]
    if value is WITHOUT:
        del place[last]
    else:
        place[last] = value
    return result


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("status", WITHOUT), ("status", "pending"), ("status", ["approved"]), ("status", None),
        ("request_id", WITHOUT), ("request_id", 7), ("request_id", "x" * 300),
        ("user_id", WITHOUT), ("user_id", 7), ("user_id", ""), ("user_id", "x" * 300),
        ("user_id", "a\0"), ("user_id", ".."), ("user_id", None),
        ("data", WITHOUT), ("data", None), ("data", []), ("data", "x"),
        ("data.profile", WITHOUT), ("data.profile", []),
        ("data.profile.email", 7), ("data.profile.first_name", {}),
        ("data.profile.last_name", "x" * 5000),
        ("data.kyc", WITHOUT), ("data.kyc", {}), ("data.kyc", "verified"),
        ("data.kyc.status", WITHOUT), ("data.kyc.status", True), ("data.kyc.kyc_level", 2),
        ("data.kyc.verified_at", "yesterday"), ("data.kyc.provider", ["KYC"]),
        ("issued_at", WITHOUT), ("issued_at", "soon"), ("issued_at", 1790000000),
        ("signature", WITHOUT), ("signature", None), ("signature", {}), ("signature", "x" * 9000),
        ("kyc", {"status": "verified"}),
    ],
)  # fmt: skip
def test_a_yes_of_wrong_types(service: FakeService, path: str, value: object) -> None:
    """Every member is checked before anything is done with it."""
    service.answers["request"] = {
        "success": True,
        "data": changed(service.connect_result(), path, value),
    }
    with pytest.raises(MalformedAnswer) as raised:
        redeem(service)
    assert raised.value.may_have_arrived
    assert raised.value.endpoint in ("connect", "profile", "kyc")


@pytest.mark.parametrize("opened", [WITHOUT, None, [], "x"])
def test_a_yes_without_data(service: FakeService, opened: object) -> None:
    """A success envelope holds an object."""
    body = {"success": True} | ({} if opened is WITHOUT else {"data": opened})
    service.answers["request"] = body
    with pytest.raises(ServiceError):
        redeem(service)


def test_a_profile_of_somebody_else(service: FakeService) -> None:
    """An ``id`` in the profile must be the ``user_id``."""
    result = changed(service.connect_result(), "data.profile.id", "somebody")
    service.answers["request"] = {"success": True, "data": result}
    with pytest.raises(SubjectMismatch):
        redeem(service)


def test_profile_and_kyc_beside_the_status(service: FakeService) -> None:
    """ "data.profile" of the spec can be read both ways, and both are understood."""
    result = service.connect_result()
    service.answers["request"] = {"success": True, "data": result | result.pop("data")}
    answer = redeem(service)
    assert answer.profile.first_name == "Ada"
    assert answer.kyc is not None


def test_what_was_not_asked_for_is_not_taken(service: FakeService) -> None:
    """With kyc:status alone the profile stays unknown."""
    with override_settings(DJANGO_IDENTITY={"default": service.settings()}):
        answer = ServiceClient(conf.application()).redeem_connect_code(CODE, ["kyc:status"])
    assert answer.profile.email == ""
    assert answer.kyc is not None
