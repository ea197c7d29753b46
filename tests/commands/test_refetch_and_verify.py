"""What operators run: re-fetches without a worker, and the checks of one credential."""

import io
import json
import os
import signal
import sys
import time
from collections.abc import Callable
from contextlib import nullcontext
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from django_identity.lifecycle.ground import runs
from django_identity.models import Consent, LinkedIdentity, LinkedVia
from tests.commands import broken_setups as broken
from tests.commands.run_command import Ran, run
from tests.credentials import issuer
from tests.factories import make_grant, make_identity, make_user
from tests.fake_service import FakeService, answer, http
from tests.test_conf import COMPLETE

pytestmark = pytest.mark.django_db(transaction=True)


def due(number: int, **fields: Any) -> LinkedIdentity:
    moment = timezone.now() - timedelta(minutes=60 - number)
    identity = make_identity(
        make_user(f"user-{number}"),
        subject=f"subject-{number}",
        refetch_due_at=moment,
        **fields,
    )
    make_grant(identity)
    return identity


def refetch(*arguments: object) -> Ran:
    return run("identity_refetch", *arguments)


def still_due() -> int:
    return LinkedIdentity.objects.filter(refetch_due_at__lte=timezone.now()).count()


@pytest.fixture
def three(service: FakeService) -> list[LinkedIdentity]:
    """Three that are due, and a service that answers about whoever is asked for."""

    def turn() -> None:
        service.subject = service.newest("claims").split("/")[-2]
        service.answers.setdefault(
            "claims",
            lambda connection: connection.sendall(answer(good())),
        )

    def good() -> Any:
        return service.good("claims")

    service.meanwhile["claims"] = turn
    return [due(number) for number in (1, 2, 3)]


def test_all_that_is_due_is_fetched_up_to_the_limit(service, three):
    assert refetch("--due", "--limit", 2).out == "re-fetches, stored: 2\n"
    assert still_due() == 1
    assert refetch("--due").out == "re-fetches, stored: 1\n"
    assert refetch("--due") == ("", "", "", 0)
    assert service.calls("claims") == 3
    # An id is enough, whether it is due or not.
    ids = [identity.pk for identity in three]
    assert refetch(*ids, "--limit", 2) == ("re-fetches, stored: 2\n", "", "", 0)


UNKNOWN: dict[str, dict[str, Any] | int] = {
    "absent": 999_999,
    "huge": 10**30,
    "revoked": {"consent": Consent.REVOKED},
    "by code": {"linked_via": LinkedVia.CONNECT, "made_account": ""},
    "live": {"environment": "live"},
}


@pytest.mark.parametrize("unknown", UNKNOWN.values(), ids=UNKNOWN)
def test_an_id_that_cannot_be_re_fetched_is_named(service, three, unknown):
    """The others are re-fetched. The command exits with 1: somebody may have mistyped an id."""
    pk = unknown
    if isinstance(unknown, dict):
        pk = three[1].pk
        LinkedIdentity.objects.filter(pk=pk).update(**unknown)
    ran = refetch(three[0].pk, pk, three[2].pk)
    assert ran.out == f"left out: {pk}\nre-fetches, stored: 2\n"
    assert ran.error.startswith(f"Not re-fetched: {pk}: ")
    assert ran.code == 1


def test_what_is_left_out_is_said_when_the_others_fail(service, three):
    service.answers["jwks"] = http(b"", status="500 Oops")
    ran = refetch(three[0].pk, 999_999)
    assert ran.out.startswith("left out: 999999\n")
    assert ran.error.startswith("Nothing could be re-fetched.")
    # Nothing could be verified, so a person has to look: cron hears of it.
    assert refetch("--due").code == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "Name linked"),
        (("--due", 1), "Name linked"),
        (("--due", "--pause"), "Name linked"),
        ((999_999,), "Not re-fetched: 999999"),
        (("--due", "--limit", 0), "Error: argument --limit"),
        ((1, 2, "--limit=-1"), "Error: argument --limit"),
        (("--pause", "nan"), "Error: argument --pause"),
        (("--pause", "1e9"), "Error: argument --pause"),
    ],
)
def test_arguments_that_contradict_or_name_nobody_are_refused(
    service,
    three,
    arguments,
    said,
):
    ran = refetch(*arguments)
    assert ran.error.startswith(said)
    assert ran.code == 1


def test_an_operator_can_pause_re_fetches(service, three, identity_clock):
    """For a day or so many hours, until it is over or is ended.

    A refresh token that a restored backup has brought back is then not sent.
    """
    assert refetch("--pause", 0.1).out.startswith("Re-fetches pause until")
    ran = refetch("--due")
    assert ran.error.partition(":")[0] == "Re-fetches pause"
    assert ran.code == 1
    assert still_due() == 3
    assert run("identity_upkeep").code == 1
    assert service.requests == []
    identity_clock.advance(minutes=6)
    assert refetch("--due").out == "re-fetches, stored: 3\n"
    refetch("--pause")
    tomorrow = timezone.now() + timedelta(hours=24)
    assert abs(runs.newest().paused_until - tomorrow) < timedelta(minutes=1)
    assert refetch("--pause", 0).out == "No pause.\n"
    assert not runs.is_paused()


@pytest.mark.usefixtures("ctrl_c")
@pytest.mark.parametrize("times", [1, 2])
def test_ctrl_c_finishes_what_is_under_way(service, three, times):
    turn = service.meanwhile["claims"]

    def press() -> None:
        turn()
        service.meanwhile["claims"] = turn
        for _ in range(times):
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.1)

    service.meanwhile["claims"] = press
    with pytest.raises(KeyboardInterrupt) if times == 2 else nullcontext():
        ran = refetch("--due")
        assert ran.out == "re-fetches, stored: 1\n"
        assert ran.error.partition(".")[0] == "Stopped"
        assert ran.code == 130
        assert "due again in five minutes" in ran.error
    assert service.calls("claims") == 1
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.parametrize(
    ("command", "break_it"),
    [
        ("identity_upkeep", broken.cut_connection),
        ("identity_upkeep", broken.read_only_database),
        ("identity_refetch --due", broken.closed_connection),
        ("identity_replay --failed", broken.no_tables),
    ],
    ids=["cut", "read-only", "closed", "no tables"],
)
def test_a_database_that_fails_is_one_sentence(site, command, break_it):
    break_it(site)
    ran = run(*command.split())
    assert ran.error.startswith("The database cannot be used (")
    assert ran.error.endswith("identity_doctor says why.") is True
    assert ran.code == 1


@pytest.mark.parametrize(
    "command",
    [("identity_erase", "subject-1"), ("identity_rotate_keys", "--forget-unreadable")],
)
def test_under_cron_nobody_answers_a_question(monkeypatch, command):
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    ran = run(*command)
    assert ran.code == 1
    assert ran.out == ""
    assert "--yes" in ran.error


# ``identity_verify``: the verifier's checks, one by one


SETTINGS = {
    **COMPLETE,
    "BASE_URL": f"{issuer.ISSUER}/api/v1",
    "CLIENT_ID": issuer.AUDIENCE,
}


@pytest.fixture
def jwks(tmp_path: Path, settings: Any) -> str:
    """The option of the command that names a file with the issuer's keys."""
    settings.DJANGO_IDENTITY = SETTINGS
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
    assert ran.code == 1
    assert ran.out == ""
    return ran.error


def test_a_good_credential_is_verified_offline(written, jwks):
    path = written(b"\n%s\n" % fresh())
    said = json.loads(
        run("identity_verify", path, jwks, "--subject", issuer.SUBJECT).out,
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
    written,
    jwks,
    option,
    reason,
):
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
    path = written(service.credential().encode())
    assert json.loads(run("identity_verify", path).out)["subject"] == service.subject
    assert service.calls("jwks") == 1


def test_a_service_without_keys_is_no_verdict(written, service):
    service.answers["jwks"] = answer({}, status="503 Busy")
    assert rejected(written(service.credential().encode())).startswith(
        "keys_unavailable",
    )
