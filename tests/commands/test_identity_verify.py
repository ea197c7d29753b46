"""``identity_verify``: the verifier's checks, one by one, for an operator."""

import io
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.commands.run_command import run
from tests.credentials import issuer
from tests.fake_service import answer
from tests.test_conf import COMPLETE

SETTINGS = {
    **COMPLETE,
    "BASE_URL": f"{issuer.ISSUER}/api/v1",
    "CLIENT_ID": issuer.AUDIENCE,
}


@pytest.fixture(autouse=True)
def _settings(settings: Any) -> None:
    settings.DJANGO_IDENTITY = SETTINGS


@pytest.fixture
def jwks(tmp_path: Path) -> str:
    """The option of the command that names a file with the issuer's keys."""
    path = tmp_path / "jwks.json"
    path.write_text(json.dumps({"keys": [issuer.jwk()]}), "utf-8")
    return f"--jwks={path}"


@pytest.fixture
def written(tmp_path: Path) -> Callable[[bytes], Path]:
    def write(credential: bytes) -> Path:
        path = tmp_path / "credential.txt"
        path.write_bytes(credential)
        return path

    return write


def fresh(**changes: Any) -> bytes:
    """A credential that was issued a minute ago."""
    now = int(time.time())
    return issuer.credential(iat=now - 60, exp=now + 86_400, **changes).encode()


def rejected(*arguments: object) -> str:
    """The error that the command ended with, and nothing was printed."""
    ran = run("identity_verify", *arguments)
    assert (ran.code, ran.out) == (1, "")
    return ran.error


def test_a_good_credential_is_verified_offline(written, jwks):
    path = written(b"\n%s\n" % fresh())
    said = json.loads(
        run("identity_verify", path, jwks, "--subject", issuer.SUBJECT).out
    )
    assert said["subject"] == issuer.SUBJECT
    assert said["claims"]["age_over_18"] is True


def test_no_control_character_reaches_the_terminal(written, jwks):
    name = issuer.disclose("\x1b[2Jname", "\x1b]0;title\x07")
    path = written(fresh(disclosures=[name], _sd=[issuer.digest(name)]))
    out = run("identity_verify", path, jwks).out
    assert out.isascii()
    assert out.replace("\n", "").isprintable()


def test_the_credential_may_come_from_standard_input(jwks, monkeypatch):
    """A pipe keeps it out of the shell's history and the process list."""
    given = io.TextIOWrapper(io.BytesIO(fresh(aud="client-2")))
    monkeypatch.setattr(sys, "stdin", given)
    assert rejected(jwks) == "rejected: payload.aud"


def test_nothing_of_a_rejected_credential_is_said(written, jwks):
    text = issuer.join(issuer.token(key=issuer.OTHER_KEY), [])
    error = rejected(written(text.encode()), jwks)
    assert error == "rejected: signature"
    assert not any(part in error for part in text.strip("~").split("."))


@pytest.mark.parametrize(
    ("option", "reason"),
    [
        ("--subject=another", "rejected: payload.sub"),
        ("--jwks={path}", "malformed_answer"),
        ("--jwks={path}.missing", "cannot be read"),
        ("--jwks={path.parent}", "cannot be read"),
    ],
)
def test_a_credential_is_checked_for_what_the_operator_asked(
    written, jwks, option, reason
):
    """Whose credential, by which keys; a file of no use is said so."""
    path = written(fresh())
    assert reason in rejected(path, jwks, option.format(path=path))


@pytest.mark.parametrize(
    "octets",
    [b"", b"\xff\xfe", b"\0" * 10, b"a" * 3_000_000],
    ids=["none", "bom", "nul", "huge"],
)
def test_any_bytes_end_in_a_rejection(written, jwks, octets):
    assert rejected(written(octets), jwks).startswith("rejected: ")


def test_without_a_file_the_services_key_set_is_used(written, service):
    """The application's own key set, as a sign-in would fetch it."""
    path = written(service.credential().encode())
    assert json.loads(run("identity_verify", path).out)["subject"] == service.subject
    assert service.calls("jwks") == 1


def test_a_service_without_keys_is_no_verdict(written, service):
    """Neither verified nor rejected: try later."""
    service.answers["jwks"] = answer({}, status="503 Busy")
    assert rejected(written(service.credential().encode())).startswith(
        "keys_unavailable"
    )
