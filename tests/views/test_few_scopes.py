"""A site may ask for little: who the person is, is learnt by whatever was granted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client, override_settings

from django_identity import conf
from django_identity.gates import claims_of
from django_identity.lifecycle.standing import standing_of
from django_identity.models import LinkedIdentity
from django_identity.testing.sandbox import RunningSandbox, SandboxPerson
from tests.fake_service import FakeService, refusal
from tests.lifecycle.refetching import refetched
from tests.sign_in import sign_in
from tests.views.bad_input.refusals import nobody_was_made, refused

pytestmark = pytest.mark.django_db(transaction=True)


def asking_for(settings: Any, *scopes: str) -> override_settings:
    given = {**settings.DJANGO_IDENTITY["default"], "SCOPES": list(scopes)}
    return override_settings(DJANGO_IDENTITY={"default": given})


@pytest.mark.parametrize(
    ("scopes", "token_subject"), [(("profile:read",), "sub"), (("kyc:read", "claims:read"), "none")]
)
def test_the_sandbox_signs_people_in(
    client: Client, settings: Any, scopes: tuple[str, ...], token_subject: str,
    identity_sandbox: RunningSandbox, identity_person: SandboxPerson,
    identity_sign_in: Callable[..., Any],
) -> None:  # fmt: skip
    """Whatever one of the three was asked for, and whether or not the token answer names them."""
    # The specification shows no name in the KYC answer: a switch adds it.
    names_itself = scopes == ("kyc:read",)
    switches = {"token_subject": token_subject, "kyc_user_id": names_itself}
    identity_sandbox.control("POST", "switches", **switches)
    with asking_for(settings, *scopes):
        assert identity_sign_in(client).status_code == 302
        identity = LinkedIdentity.objects.get()
        assert identity.subject == identity_person.user_id
        user = User.objects.get()
        assert ("age_over_18" in claims_of(user)) is ("claims:read" in scopes)
        assert (standing_of(user).level_shortfall("level_2") is None) is ("kyc:read" in scopes)
        if "profile:read" not in scopes:
            assert refetched(identity) == "stored"


@pytest.mark.parametrize("switch", ["users_me", "kyc_user_id"])
def test_a_sandbox_that_names_nobody_signs_nobody_in(
    client: Client, settings: Any, switch: str, caplog: pytest.LogCaptureFixture,
    identity_sandbox: RunningSandbox, identity_sign_in: Callable[..., Any],
) -> None:  # fmt: skip
    """Neither the token answer, nor ``users/me``, nor the KYC answer: a page of its own."""
    identity_sandbox.control("POST", "switches", **{switch: False})
    with asking_for(settings, "kyc:read"):
        refused(identity_sign_in(client), "subject_unknown", caplog)
    assert nobody_was_made()


@pytest.mark.parametrize(
    ("granted", "calls"),
    [("claims:read", ["token", "claims", "jwks"]), ("kyc:read", ["token", "kyc"]),
     ("kyc:read claims:read", ["token", "claims", "kyc", "jwks"])],
)  # fmt: skip
def test_nothing_is_read_twice(
    client: Client, service: FakeService, granted: str, calls: list[str]
) -> None:
    """What was granted counts, not what was asked for; the first answer names the person."""
    service.token, service.kyc = {"scope": granted}, {"user_id": "subject-1"}
    assert sign_in(client).status_code == 302
    assert [name for name, _, _ in service.requests] == calls
    assert LinkedIdentity.objects.get().subject == "subject-1"


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"token": {"scope": "documents:metadata"}}, "subject_unknown"),
        ({"token": {"scope": ""}}, "subject_unknown"),
        ({"token": {"scope": "kyc:read"}}, "subject_unknown"),
        ({"token": {"scope": "kyc:read"}, "kyc": {"user_id": None}}, "subject_unknown"),
        ({"token": {"scope": "kyc:read"}, "kyc": {"user_id": 7}}, "malformed_answer"),
        ({"token": {"scope": "kyc:read"}, "kyc": {"user_id": "a", "sub": "b"}}, "subject_mismatch"),
        ({"token": {"scope": "claims:read"}, "payload": {"sub": "x"}}, "credential_rejected"),
        ({"token": {"scope": "claims:read"}, "claims_user_id": "x"}, "credential_rejected"),
        ({"token": {"scope": "kyc:read claims:read"}, "kyc": {"user_id": "x"}}, "subject_mismatch"),
        ({"kyc": {"user_id": "x"}}, "subject_mismatch"),
        *(({"answers": {"me": refusal(code, status)}}, "subject_unknown")
          for code, status in (("USER_MISMATCH", "403 No"), ("NOT_FOUND", "404 Not Found"))),
    ],
    ids=str,
)  # fmt: skip
def test_an_answer_that_names_nobody_or_two(
    client: Client, service: FakeService, caplog: pytest.LogCaptureFixture,
    fields: dict[str, Any], code: str,
) -> None:  # fmt: skip
    """Nobody is signed in as a guess."""
    for name, value in fields.items():
        setattr(service, name, value)
    refused(sign_in(client), code, caplog)
    assert nobody_was_made()


def test_the_check_finds_scopes_that_name_nobody(service: FakeService) -> None:
    """Error E019: such a sign-in could end well only where the token answer names the person."""
    for scopes, found in (
        (["documents:metadata"], ["E019"]),
        (["documents:metadata", "openid"], ["E019"]),
        (["documents:metadata", "kyc:read"], []),
        (["claims:read"], []),
    ):
        given = service.settings(SCOPES=scopes)
        with override_settings(DJANGO_IDENTITY={"default": given}):
            assert [problem.check_id for problem in conf.problems()] == found
            assert conf.application().scopes == tuple(scopes)
