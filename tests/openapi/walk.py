"""Schemathesis against the site and the sandbox: ``python -m tests.openapi.walk SECONDS``.

No answer may be a server error, and the document must name each: status, content type, members.
"""

from __future__ import annotations

import base64
import hashlib
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx

from django_identity.testing.sandbox import RunningSandbox, running_sandbox
from tests.sites.browser import Browser
from tests.sites.running import RunningSite, running_site
from tests.sites.table import site_named

DOCS = Path(__file__).resolve().parents[2] / "docs"
TOOL = Path(sys.executable).with_name("st")
CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
)
VERIFIER = "v" * 43
CALLBACK = "https://client.example/back"


@dataclass(frozen=True)
class Run:
    """One run: a document, where it is served, and what each request carries."""

    name: str
    document: str
    url: str
    headers: dict[str, str]
    paths: str = ".*"

    def start(self, seconds: int, folder: str) -> bool:
        """Whether every answer was as the document says. ``folder``: for what the tool keeps."""
        sent = [f"--header={name}: {value}" for name, value in self.headers.items()]
        command = [
            str(TOOL), "run", str(DOCS / self.document), "--url", self.url,
            "--checks", ",".join(CHECKS), "--include-path-regex", self.paths,
            "--phases", "examples,coverage,fuzzing", "--max-time", str(seconds),
            "--suppress-health-check", "all", "--warnings", "off", "--continue-on-failure",
            "--no-color", *sent,
        ]  # fmt: skip
        sys.stdout.write(f"== {self.name}\n")
        sys.stdout.flush()
        return subprocess.run(command, cwd=folder, check=False).returncode == 0


def runs_of_site(site: RunningSite, sandbox: RunningSandbox) -> Iterator[Run]:
    """Nobody, with the CSRF token; somebody with an identity; and a page of another site."""
    with site.new_client() as client:
        token = client.get(f"{site.address}/identity/api/me").json()["csrf_token"]
        cookies = "; ".join(f"{name}={value}" for name, value in client.cookies.items())
    nobody = {"Cookie": cookies, "X-CSRFToken": token}
    yield Run("site: nobody", "openapi.yaml", site.address, nobody)
    with Browser(site) as browser:
        browser.sign_in(sandbox.create_person())
        somebody = {
            "Cookie": browser.cookies,
            "X-CSRFToken": browser.fetch("/identity/api/me").json()["csrf_token"],
        }
    yield Run("site: somebody", "openapi.yaml", site.address, somebody)
    yield Run("site: a foreign page", "openapi.yaml", site.address, {})


def runs_of_sandbox(sandbox: RunningSandbox) -> Iterator[Run]:
    """With a token, with a client's secret, with the portal's token, and without anything."""
    url = sandbox.auth_url
    made = sandbox.control("POST", "applications", redirect_uris=[CALLBACK])["test"]
    secret = base64.b64encode(f"{made['client_id']}:{made['client_secret']}".encode()).decode()
    for name, scheme, paths in (
        ("a person's token", f"Bearer {access_token(sandbox, made)}", "/users/"),
        ("a client's secret", f"Basic {secret}", "connect|verify|token|jwks"),
        ("the portal's token", f"Bearer {sandbox.portal_token}", "developer"),
    ):
        yield Run(f"sandbox: {name}", "openapi-sandbox.yaml", url, {"Authorization": scheme}, paths)
    yield Run("sandbox: nothing", "openapi-sandbox.yaml", url, {})


def access_token(sandbox: RunningSandbox, client: dict[str, str]) -> str:
    """The token of a new person, for all scopes of the standard tier."""
    challenge = base64.urlsafe_b64encode(hashlib.sha256(VERIFIER.encode()).digest())
    asked = {
        "response_type": "code",
        "client_id": client["client_id"],
        "redirect_uri": CALLBACK,
        "scope": "profile:read kyc:read claims:read documents:metadata",
        "state": "a-state-of-enough-length",
        "code_challenge": challenge.rstrip(b"=").decode(),
        "code_challenge_method": "S256",
    }
    address = f"{sandbox.auth_url}/oauth2/auth?{urlencode(asked)}"
    back = sandbox.approve(address, sandbox.create_person())
    (code,) = parse_qs(urlsplit(back).query)["code"]
    given = {
        "grant_type": "authorization_code",
        "code": code,
        "redirect_uri": CALLBACK,
        "code_verifier": VERIFIER,
        "client_id": client["client_id"],
        "client_secret": client["client_secret"],
    }
    answer = httpx.post(f"{sandbox.auth_url}/oauth2/token", data=given, trust_env=False)
    token: str = answer.json()["access_token"]
    return token


def main(seconds: str) -> int:
    with (
        tempfile.TemporaryDirectory() as folder,
        running_sandbox() as sandbox,
        running_site(site_named("frontend"), sandbox, Path(folder)) as site,
    ):
        runs = [*runs_of_site(site, sandbox), *runs_of_sandbox(sandbox)]
        ended = [run.start(int(seconds) // len(runs), folder) for run in runs]
    return 0 if all(ended) else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
