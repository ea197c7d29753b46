"""``compose.yaml`` without Docker: its commands and settings are tried one by one."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml

from django_identity.sandbox import sandbox_application
from django_identity.sandbox.__main__ import CONTROL_TOKEN_VARIABLE, PORTAL_TOKEN_VARIABLE
from django_identity.sandbox.server import tls
from example_project import settings
from example_project.demo.processes import free_port
from tests.sandbox.driver import Sandbox

ROOT = Path(__file__).resolve().parents[2]
DOCKERFILE = (ROOT / "Dockerfile").read_text()
SETTINGS = Path(settings.__file__).read_text()
SERVICES: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"]
OVER_HTTPS: dict[str, Any] = yaml.safe_load((ROOT / "compose.tls.yaml").read_text())["services"]
SITE: dict[str, str] = SERVICES["site"]["environment"]
TOKENS: dict[str, str] = SERVICES["sandbox"]["environment"]
CONTROL = {"Authorization": f"Bearer {TOKENS['IDENTITY_SANDBOX_CONTROL_TOKEN']}"}


class ContainedSandbox(Sandbox):
    """The sandbox of the file, on a free port; its client sends the file's control token."""

    def __init__(self, folder: Path) -> None:
        replaced = ("--host=", "--database=")
        given = [
            each for each in SERVICES["sandbox"]["command"][1:] if not each.startswith(replaced)
        ]
        given.append(f"--database={folder / 'sandbox.sqlite3'}")
        super().__init__(*given, "--port", str(port := free_port()))
        self.client.base_url = f"http://127.0.0.1:{port}"
        self.client.headers.update(CONTROL)


@pytest.fixture(scope="module")
def contained(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with pytest.MonkeyPatch.context() as environment:
        for name, value in TOKENS.items():
            environment.setenv(name, value)
        with ContainedSandbox(tmp_path_factory.mktemp("sandbox")) as sandbox:
            yield sandbox


def test_the_services_are_there() -> None:
    """Each waits for what it needs, and nothing is published beyond this machine.

    The worker waits for the site, whose start makes the tables.
    """
    assert set(SERVICES) == {"sandbox", "site", "worker", "database", "redis"}
    needed = {"site": {"database", "redis", "sandbox"}, "worker": {"site"}}
    for name, others in needed.items():
        assert set(SERVICES[name]["depends_on"]) == others
        for other, condition in SERVICES[name]["depends_on"].items():
            assert condition == {"condition": "service_healthy"}
            assert SERVICES[other]["healthcheck"]["test"]
    for service in SERVICES.values():
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", ()))


def test_the_database_is_healthy_once_it_listens_on_the_network() -> None:
    """While PostgreSQL's image prepares the database, a server answers on the socket alone."""
    (_, command) = SERVICES["database"]["healthcheck"]["test"]
    assert "--host 127.0.0.1" in command


def test_the_image_has_what_the_commands_need() -> None:
    """The Dockerfile copies it, and ``.dockerignore`` lets it through."""
    copied = re.findall(r"^COPY (.+) \S+$", DOCKERFILE, re.MULTILINE)
    let_through = (ROOT / ".dockerignore").read_text().split()
    for path in " ".join(copied).split():
        assert (ROOT / path).exists()
        assert f"!{path}" in let_through
    # The last match wins: these stay out of the folders that are let through.
    assert {"**/.*", "**/*.sqlite3", "**/*.pem"} <= {
        *let_through[let_through.index("!django_identity") :]
    }


def test_the_image_has_the_libraries_of_the_addresses() -> None:
    """Celery and the database back end import them only when they meet the address."""
    installed = set(re.findall(r'"([^"]+)"', DOCKERFILE.split("pip install")[1].split("\n")[0]))
    assert urlsplit(SITE["CELERY_BROKER_URL"]).scheme == "redis"
    assert "celery[redis]" in installed
    assert urlsplit(SITE["DATABASE_URL"]).scheme == "postgres"
    assert any(each.startswith("psycopg[binary]") for each in installed)


def test_every_variable_is_read() -> None:
    """A misspelt one would be ignored without a word."""
    read = set(re.findall(r'environ(?:\.get\(|\[)"(\w+)"', SETTINGS)) | {
        "DATABASE_URL",  # by dj-database-url
        "DJANGO_SETTINGS_MODULE",
        *(f"IDENTITY_{key}" for key in (*settings.TEXTS, *settings.LISTS, *settings.NUMBERS)),
    }
    assert set(SITE) <= read
    assert set(TOKENS) == {CONTROL_TOKEN_VARIABLE, PORTAL_TOKEN_VARIABLE}


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


def test_over_https_only_the_addresses_differ() -> None:
    """The sandbox has the same options, and the site trusts the file that the sandbox writes."""
    secure = {
        option.replace("http://sandbox.", "https://sandbox.")
        for option in SERVICES["sandbox"]["command"]
    }
    folder = "/app/certificates"
    assert set(OVER_HTTPS["sandbox"]["command"]) == secure | {f"--tls={folder}"}
    assert OVER_HTTPS["site"] == OVER_HTTPS["worker"]
    changed = OVER_HTTPS["site"]["environment"]
    assert set(changed) - set(SITE) == {"IDENTITY_CA_FILE"}
    assert changed["IDENTITY_INSECURE_TEST_HOSTS"] == ""
    given = sandbox_application(changed["IDENTITY_AUTH_URL"])
    assert f"--origin={given['AUTH_URL']}" in secure
    assert changed["IDENTITY_BASE_URL"] == given["BASE_URL"]
    assert changed["IDENTITY_SERVICE_ACCOUNT_URL"] == given["SERVICE_ACCOUNT_URL"]
    assert changed["IDENTITY_CA_FILE"] == f"{folder}/{tls.CA_FILE}"
    assert changed["IDENTITY_CA_FILE"] in OVER_HTTPS["sandbox"]["healthcheck"]["test"][-1]
    (sandbox_volume,) = OVER_HTTPS["sandbox"]["volumes"]
    (site_volume,) = OVER_HTTPS["site"]["volumes"]
    assert site_volume == f"{sandbox_volume}:ro" == f"certificates:{folder}:ro"
    made = re.search(r"mkdir (.+?) &&", DOCKERFILE)
    assert made
    assert Path(folder).name in made[1]


@pytest.mark.processes
def test_the_settings_pass_every_check(tmp_path: Path) -> None:
    """With the file's environment, and a database of this machine; no warning either."""
    assert SERVICES["worker"]["environment"] == SITE
    checked = subprocess.run(
        [sys.executable, "manage.py", "check", "--fail-level=WARNING"],
        cwd=ROOT, env=_environment(tmp_path), capture_output=True, text=True, timeout=60,
        check=False,
    )  # fmt: skip
    assert checked.returncode == 0, checked.stderr


@pytest.mark.processes
def test_the_site_starts_and_stops_as_the_file_says(tmp_path: Path) -> None:
    """It is healthy once it answers. The stop signal reaches it, and it ends in good order.

    The first process of a container ignores signals without a handler, so another one is first.
    """
    assert all(SERVICES[name]["init"] for name in ("sandbox", "site", "worker"))
    site = SERVICES["site"]
    port = str(free_port())
    shell, option, command = shlex.split(site["command"])
    environment = _environment(tmp_path)
    environment["PATH"] = f"{Path(sys.executable).parent}:{environment['PATH']}"
    health = [sys.executable, *site["healthcheck"]["test"][2:]]
    assert site["healthcheck"]["test"][:2] == ["CMD", "python"]
    health[-1] = health[-1].replace("8000", port)
    process = subprocess.Popen(
        [shell, option, command.replace("0.0.0.0:8000", f"127.0.0.1:{port}")],
        cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        start_new_session=True,
    )  # fmt: skip
    try:
        deadline = time.monotonic() + 60
        while subprocess.run(health, capture_output=True, check=False).returncode:
            assert process.poll() is None
            assert time.monotonic() < deadline
        process.send_signal(signal.Signals[site["stop_signal"]])
        assert process.wait(timeout=10) == 0
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def _environment(folder: Path) -> dict[str, str]:
    """Return the site's, with a database in ``folder``."""
    return {
        **os.environ,
        **SITE,
        "DATABASE_URL": f"sqlite:///{folder / 'site.sqlite3'}",
    }
