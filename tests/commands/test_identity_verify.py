"""``identity_verify``: the verifier's checks, one by one, for an operator."""

import io
import json
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import override_settings

from tests.credentials.issuer import (
    AUDIENCE,
    ISSUER,
    OTHER_KEY,
    SUBJECT,
    credential,
    digest,
    disclose,
    join,
    jwk,
    token,
)
from tests.fake_service import FakeService, answer

SETTINGS = {
    "ENVIRONMENT": "test",
    "BASE_URL": f"{ISSUER}/api/v1",
    "AUTH_URL": ISSUER,
    "CLIENT_ID": AUDIENCE,
    "CLIENT_SECRET": "a-client-secret-for-tests-alone",
}
OFFLINE = override_settings(
    DJANGO_IDENTITY={"default": SETTINGS, "second": {**SETTINGS, "CLIENT_ID": "client-2"}}
)


def fresh(**changes: Any) -> str:
    """A credential that was issued a minute ago."""
    now = int(time.time())
    return credential(iat=now - 60, exp=now + 86_400, **changes)


@pytest.fixture
def jwks(tmp_path: Path) -> str:
    path = tmp_path / "jwks.json"
    path.write_text(json.dumps({"keys": [jwk()]}), "utf-8")
    return str(path)


@pytest.fixture
def written(tmp_path: Path):
    def write(text: str) -> str:
        path = tmp_path / "credential.txt"
        path.write_text(text, "utf-8")
        return str(path)

    return write


def verify(*arguments: str, **options: str) -> str:
    out = io.StringIO()
    _verify(out, *arguments, **options)
    return out.getvalue()


def _verify(out: io.StringIO, *arguments: str, **options: str) -> None:
    """As on a command line: an option that is given as text."""
    given = [part for name, text in options.items() for part in (f"--{name}", text)]
    call_command("identity_verify", *arguments, *given, stdout=out)


def rejected(*arguments: str, **options: str) -> tuple[str, str]:
    """What the command printed, and the error it ended with."""
    out = io.StringIO()
    with pytest.raises(CommandError) as caught:
        _verify(out, *arguments, **options)
    assert caught.value.returncode == 1
    return out.getvalue(), str(caught.value)


@OFFLINE
def test_a_good_credential_is_verified_offline(written, jwks) -> None:
    """What it proves; the white space around it is the file's."""
    out = verify(written(f"\n{fresh()}\n"), jwks=jwks)
    assert json.loads(out)["claims"]["age_over_18"] is True


@OFFLINE
def test_no_control_character_reaches_the_terminal(written, jwks) -> None:
    """The issuer's texts are written as ASCII."""
    name = disclose("\x1b[2Jname", "\x1b]0;title\x07")
    text = fresh(disclosures=[name], _sd=[digest(name)])
    out = verify(written(text), jwks=jwks)
    assert out.isascii()
    assert out.replace("\n", "").isprintable()


@OFFLINE
def test_the_credential_may_come_from_standard_input(jwks, monkeypatch) -> None:
    """A pipe keeps it out of the shell's history and the process list."""
    given = io.TextIOWrapper(io.BytesIO(fresh(aud="client-2").encode()))
    monkeypatch.setattr(sys, "stdin", given)
    out, error = rejected(jwks=jwks)
    assert "payload.aud" in error
    assert out == ""


@OFFLINE
def test_a_rejected_credential_ends_with_the_reason(written, jwks) -> None:
    """Exit status 1 and the reason; nothing of the credential."""
    text = join(token(key=OTHER_KEY), [])
    out, error = rejected(written(text), jwks=jwks)
    assert error == "rejected: signature"
    assert not any(part in out + error for part in text.strip("~").split("."))


@OFFLINE
def test_subject_and_application_are_what_the_operator_asks_for(written, jwks) -> None:
    """Whose credential it has to be, and for which application."""
    path = written(fresh())
    assert json.loads(verify(path, jwks=jwks, subject=SUBJECT))["subject"] == SUBJECT
    wrong = [
        ({"subject": "another"}, "payload.sub"),
        ({"application": "second"}, "payload.aud"),
    ]
    for options, reason in wrong:
        error = rejected(path, jwks=jwks, **options)[1]
        assert error == f"rejected: {reason}"


@OFFLINE
def test_what_cannot_be_read_is_said_in_a_sentence(written, jwks, tmp_path) -> None:
    """A missing file, a directory, a key set that is none, an unknown application."""
    good = written(fresh())
    assert "cannot be read" in rejected(str(tmp_path / "missing"), jwks=jwks)[1]
    assert "cannot be read" in rejected(str(tmp_path), jwks=jwks)[1]
    assert "malformed_answer" in rejected(good, jwks=good)[1]
    assert "configuration" in rejected(good, jwks=jwks, application="third")[1]


@OFFLINE
@pytest.mark.parametrize(
    "octets", [b"", b"\xff\xfe", b"\0" * 10, b"a" * 3_000_000], ids=["none", "bom", "nul", "huge"]
)
def test_any_bytes_end_in_a_rejection(tmp_path, jwks, octets: bytes) -> None:
    """Whatever the file holds."""
    path = tmp_path / "credential"
    path.write_bytes(octets)
    assert rejected(str(path), jwks=jwks)[1].startswith("rejected: ")


def test_without_a_file_the_services_key_set_is_used(written, service: FakeService) -> None:
    """The application's own key set, as a sign-in would fetch it."""
    assert json.loads(verify(written(service.credential())))["subject"] == service.subject
    assert service.calls("jwks") == 1


def test_a_service_without_keys_is_no_verdict(written, service: FakeService) -> None:
    """Neither verified nor rejected: try later."""
    service.answers["jwks"] = answer({}, status="503 Busy")
    out, error = rejected(written(service.credential()))
    assert out == ""
    assert error.startswith("keys_unavailable")
