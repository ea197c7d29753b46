"""``compose.yaml`` without Docker: its commands and settings are tried one by one."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml

from django_identity.sandbox import sandbox_application
from example_project.demo.processes import free_port
from tests.sandbox.driver import Sandbox

ROOT = Path(__file__).resolve().parents[2]
SERVICES: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"]
SITE: dict[str, str] = SERVICES["site"]["environment"]
TOKENS: dict[str, str] = SERVICES["sandbox"]["environment"]
CONTROL = {"Authorization": f"Bearer {TOKENS['IDENTITY_SANDBOX_CONTROL_TOKEN']}"}


class ContainedSandbox(Sandbox):
    """The sandbox of the file, on a free port; its client sends the file's control token."""

    def __init__(self) -> None:
        given = [each for each in SERVICES["sandbox"]["command"][1:] if "--host" not in each]
        super().__init__(*given, "--port", str(port := free_port()))
        self.client.base_url = f"http://127.0.0.1:{port}"
        self.client.headers.update(CONTROL)


@pytest.fixture(scope="module")
def contained() -> Any:
    with pytest.MonkeyPatch.context() as environment:
        for name, value in TOKENS.items():
            environment.setenv(name, value)
        with ContainedSandbox() as sandbox:
            yield sandbox


def test_the_services_are_there() -> None:
    """Each waits for what it needs, and nothing is published beyond this machine."""
    assert set(SERVICES) == {"sandbox", "site", "worker", "database", "redis"}
    for name in ("site", "worker"):
        assert set(SERVICES[name]["depends_on"]) == {"database", "redis", "sandbox"}
    for name in ("database", "redis", "sandbox"):
        assert SERVICES[name]["healthcheck"]["test"]
    for service in SERVICES.values():
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", ()))


def test_the_image_has_what_the_commands_need() -> None:
    """The Dockerfile copies it, and ``.dockerignore`` lets it through."""
    copied = re.findall(r"^COPY (.+) \S+$", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
    let_through = (ROOT / ".dockerignore").read_text().split()
    for path in " ".join(copied).split():
        assert (ROOT / path).exists()
        assert f"!{path}" in let_through


def test_the_sandbox_starts_as_the_file_says(contained: Sandbox) -> None:
    """With the local site at both addresses, events to the container, control by the token."""
    assert contained.control("GET", "health") == {"status": "ready"}
    refused = contained.client.get("/sandbox/health", headers={"Authorization": ""})
    assert refused.status_code == 403
    assert contained.portal_token == TOKENS["IDENTITY_SANDBOX_PORTAL_TOKEN"]
    (local,) = contained.control("GET", "applications")
    assert local["clients"]["test"] == SITE["IDENTITY_CLIENT_ID"]


@pytest.mark.parametrize("site", ["http://site:8000", "http://localhost:8000"])
def test_a_person_is_sent_back_to_the_site(contained: Sandbox, site: str) -> None:
    """Under either name."""
    query = {
        "response_type": "code",
        "client_id": SITE["IDENTITY_CLIENT_ID"],
        "redirect_uri": f"{site}/identity/callback/",
        "state": "s",
        "code_challenge": "x" * 43,
        "code_challenge_method": "S256",
    }
    url = str(contained.client.base_url.join("/oauth2/auth").copy_with(params=query))
    ada = "00000000-0000-4000-8000-000000000001"
    callback = contained.control("POST", "authorizations", url=url, user_id=ada)["callback"]
    assert callback.startswith(f"{site}/identity/callback/?code=")


def test_the_credentials_are_the_local_site_s() -> None:
    """And the address is one that the network and browsers know."""
    given = sandbox_application(SITE["IDENTITY_AUTH_URL"])
    assert SITE["IDENTITY_BASE_URL"] == given["BASE_URL"]
    assert SITE["IDENTITY_CLIENT_ID"] == given["CLIENT_ID"]
    assert SITE["IDENTITY_CLIENT_SECRET"] == given["CLIENT_SECRET"]
    assert SITE["IDENTITY_SERVICE_ACCOUNT_URL"] == given["SERVICE_ACCOUNT_URL"]
    assert [SITE["IDENTITY_WEBHOOK_SECRETS"]] == given["WEBHOOK_SECRETS"]
    host = urlsplit(given["AUTH_URL"]).hostname
    assert SERVICES["sandbox"]["networks"]["default"]["aliases"] == [host]
    assert f"--origin={given['AUTH_URL']}" in SERVICES["sandbox"]["command"]


@pytest.mark.processes
@pytest.mark.parametrize("name", ["site", "worker"])
def test_the_settings_pass_every_check(name: str, tmp_path: Path) -> None:
    """With the file's environment, and a database of this machine."""
    environment = {
        **os.environ,
        **SERVICES[name]["environment"],
        "DATABASE_URL": f"sqlite:///{tmp_path / 'site.sqlite3'}",
    }
    checked = subprocess.run(
        [sys.executable, "manage.py", "check"],
        cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert checked.returncode == 0, checked.stderr
