"""``identity_verify --ask-service``: the service's verdict on a credential beside the site's."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from django_identity import conf
from django_identity.exceptions import (
    ClientRejected,
    MalformedAnswer,
    ServiceRefusal,
    ServiceUnavailable,
)
from django_identity.models import LinkedIdentity
from django_identity.secrets import Secret
from django_identity.service import ServiceClient
from django_identity.testing.sandbox import RunningSandbox, SandboxPerson
from tests.factories import unsealed
from tests.fake_service import FakeService, answer, html, refusal

pytestmark = pytest.mark.django_db(transaction=True)


def ask(credential: str, folder: Path, *options: str) -> tuple[str, str]:
    """What the command wrote, and the error that it ended with."""
    out, file = io.StringIO(), folder / "credential.txt"
    file.write_text(credential, "utf-8")
    try:
        call_command("identity_verify", str(file), "--ask-service", *options, stdout=out)
    except CommandError as error:
        return out.getvalue(), str(error)
    return out.getvalue(), ""


@pytest.fixture
def credential(client: Client, identity_sign_in: Callable[..., Any]) -> str:
    """Of a person who signed in at the sandbox."""
    identity_sign_in(client)
    identity = LinkedIdentity.objects.get()
    token = unsealed(identity, "access_token", identity.grant.access_token)
    answer = ServiceClient(conf.application()).claims(identity.subject, access_token=Secret(token))
    assert answer.credential
    return answer.credential


def test_both_agree(credential: str, tmp_path: Path) -> None:
    """On a good credential, and on one that was changed."""
    out, error = ask(credential, tmp_path)
    assert "  this site    valid\n  the service  valid\n" in out
    assert error == ""
    out, error = ask(credential[:-1], tmp_path)
    assert "  this site    not valid: format.tilde\n  the service  not valid: malformed\n" in out
    assert error.startswith("rejected: format.tilde: ")
    assert credential[:40] not in out + error


def test_the_service_knows_of_revocations(
    credential: str,
    identity_sandbox: RunningSandbox,
    identity_person: SandboxPerson,
    tmp_path: Path,
) -> None:
    """The credential itself is good until it expires, and the command says no."""
    path = f"users/{identity_person.user_id}/claims/age_over_18/revoke"
    identity_sandbox.control("POST", path)
    out, error = ask(credential, tmp_path)
    assert "  this site    valid\n  the service  not valid: revoked\n" in out
    assert error == "the service says not valid: revoked"


def test_the_client_reads_the_verdict(credential: str) -> None:
    """Valid, and no reason why not."""
    found = ServiceClient(conf.application()).verify_claims(credential)
    assert (found.valid, found.reason) == (True, "")


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        (refusal("UNAUTHORIZED", status="401 No"), ClientRejected),
        (refusal("INVALID_REQUEST"), ServiceRefusal),
        ({"success": True, "data": {}}, MalformedAnswer),
        ({"success": True, "data": {"valid": "true"}}, MalformedAnswer),
        (html(), ServiceUnavailable),
        (answer([]), ServiceUnavailable),
    ],
)
def test_a_bad_answer_is_no_verdict(service: FakeService, given: Any, kind: type) -> None:
    """A typed error, and one request: nothing is repeated."""
    service.answers["verify"] = given
    with pytest.raises(kind):
        ServiceClient(conf.application()).verify_claims("a~")
    [(_, target, raw)] = service.requests
    assert target == "/api/v1/claims/verify"
    assert b"\r\nAuthorization: Basic " in raw
    assert raw.endswith(b'{"credential":"a~"}')


def test_a_reason_of_another_shape_is_left_out(service: FakeService) -> None:
    """It could be anything."""
    service.answers["verify"] = {"success": True, "data": {"valid": False, "reason": "\x1b[2J"}}
    assert ServiceClient(conf.application()).verify_claims("a~").reason == ""


def test_a_service_without_an_answer_is_no_verdict(service: FakeService, tmp_path: Path) -> None:
    """The site's own verdict stands; the command ends with the service's code."""
    service.answers["verify"] = html(status="503 Busy")
    out, error = ask(service.credential(), tmp_path)
    assert "verified:" in out
    assert error.startswith("service_unavailable")
