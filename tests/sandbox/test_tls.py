"""The sandbox over https: by a certificate that it makes itself, or by given files."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.sandbox.driver import REDIRECT_URI, Sandbox, SecureSandbox
from tests.sandbox.receiver import SECRET, Receiver
from tests.service.authority import Authority

pytestmark = pytest.mark.processes

COMMAND = [sys.executable, "-m", "django_identity.sandbox", "--port=0"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("certificates")


@pytest.fixture(scope="module")
def secure(folder: Path) -> Iterator[SecureSandbox]:
    with SecureSandbox("--tls", str(folder)) as sandbox:
        yield sandbox


def test_it_serves_https_by_a_certificate_of_its_own(secure: SecureSandbox, folder: Path) -> None:
    """Addresses and issuer are https; its CA file vouches for it."""
    assert secure.origin.startswith("https://127.0.0.1:")
    assert secure.control("GET", "health") == {"status": "ready"}
    assert secure.ca_file.parent == folder
    with httpx.Client(base_url=f"https://localhost:{secure.port}", verify=secure.trusting()) as by:
        assert by.get("/.well-known/jwks.json").status_code == 200


def test_only_its_reader_has_the_key(secure: SecureSandbox, folder: Path) -> None:
    """The CA file holds no key at all, so it cannot vouch for anything else."""
    assert b"PRIVATE" not in secure.ca_file.read_bytes()
    assert (folder / "sandbox.pem").stat().st_mode & 0o077 == 0


def test_nobody_else_vouches_for_it(secure: SecureSandbox) -> None:
    """And plain http gets no answer; both leave the sandbox well and silent."""
    with pytest.raises(httpx.ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
        httpx.get(f"{secure.origin}/")
    with pytest.raises(httpx.TransportError):
        httpx.get(secure.origin.replace("https", "http"))
    assert secure.control("GET", "health") == {"status": "ready"}


def test_pages_and_faults_work(secure: SecureSandbox) -> None:
    """A form over https, and a dropped connection."""
    page = secure.client.get("/account/sign-in")
    token = page.text.split('csrfmiddlewaretoken" value="')[1].split('"')[0]
    form = {"csrfmiddlewaretoken": token, "person": "00000000-0000-4000-8000-000000000001"}
    headers = {"Referer": str(page.url)}
    assert secure.client.post("/account/continue", data=form, headers=headers).status_code == 302
    secure.control("POST", "faults", kind="drop", endpoint="jwks")
    with pytest.raises(httpx.RemoteProtocolError):
        secure.client.get("/.well-known/jwks.json")
    assert secure.client.get("/.well-known/jwks.json").status_code == 200


def test_kept_files_are_used_again(tmp_path: Path) -> None:
    """A site needs to read the CA file once, until the names change."""
    with SecureSandbox("--tls", str(tmp_path)) as first:
        kept = first.ca_file.read_bytes()
    with SecureSandbox("--tls", str(tmp_path)) as second:
        assert second.ca_file.read_bytes() == kept
    options = ("--origin", "https://sandbox.localhost:9400")
    with Sandbox("--tls", str(tmp_path), *options) as third:
        assert third.lines
    assert (tmp_path / "sandbox-ca.pem").read_bytes() != kept


def test_given_files(tmp_path: Path) -> None:
    """A certificate with its key in the same file, by an authority of one's own."""
    authority = Authority(tmp_path)
    authority.server_context()
    path = str(tmp_path / "server.pem")
    with SecureSandbox("--tls-cert", path, ca_file=authority.file) as sandbox:
        assert sandbox.client.get("/.well-known/jwks.json").status_code == 200


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--tls-cert=/no/such/file"], "cannot be used: [Errno 2] No such file or directory: '/no"),
        ([f"--tls-cert={__file__}", "--tls-key=/no/such/key"], "/no/such/key"),
        ([f"--tls-cert={__file__}"], "cannot be used"),
        (["--tls", "--tls-cert=x"], "not both"),
        (["--tls-key=x"], "needs --tls-cert"),
        (["--webhook-ca=/no/such/file"], "/no/such/file"),
    ],
)
def test_unusable_files_are_a_clear_message(options: list[str], words: str) -> None:
    """One line, no traceback."""
    ended: Any = subprocess.run(
        [*COMMAND, *options], capture_output=True, text=True, timeout=30, check=False
    )
    assert ended.returncode == 2
    assert words in ended.stderr
    assert "Traceback" not in ended.stderr


def test_events_go_to_an_https_site_of_a_private_authority(tmp_path: Path) -> None:
    """As the live mode of a site needs it, tried on one machine."""
    authority = Authority(tmp_path)
    options = ("--webhook-ca", str(authority.file))
    with Receiver(authority.server_context()) as receiver, Sandbox(*options) as sandbox:
        hears = {"mode": "live", "url": receiver.url, "secret": SECRET}
        shop = sandbox.control("POST", "applications", name="Shop", redirect_uris=[REDIRECT_URI])
        sandbox.control("POST", f"applications/{shop['app_id']}/webhook", **hears)
        sandbox.control(
            "POST", "events", client_id=shop["live"]["client_id"], event_type="kyc.verified"
        )
        assert receiver.wait_for(1)[0]["event_type"] == "kyc.verified"
