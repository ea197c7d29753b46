"""The sandbox as a separate process, and accounts there.

It needs the extra ``django-identity[sandbox]``. All requests go to the control API of the sandbox
(see ``docs/sandbox.md``).
"""

import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPSConnection
from typing import Any
from urllib.parse import quote, urlsplit

SECONDS = 60.0
PAUSE = 0.01
# Where the sandbox serves the documents of each scope. The spec shows no path.
DOCUMENT_PATHS = {
    "documents:metadata": "/users/{subject}/documents/metadata",
    "documents:read": "/users/{subject}/documents",
}


class SandboxError(Exception):
    """The sandbox failed to start, or refused a request."""


@dataclass(frozen=True, slots=True)
class SandboxPerson:
    """A person with an account at the sandbox."""

    user_id: str
    email: str = field(repr=False)
    password: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class RunningSandbox:
    """The addresses of a running sandbox, and functions that control it."""

    base_url: str
    auth_url: str
    portal_token: str = field(repr=False)

    def control(self, method: str, path: str, /, **body: Any) -> Any:
        """Call the control API, as ``control("POST", "clock", advance=60)``. Returns its JSON."""
        parts = urlsplit(self.auth_url)
        kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
        with closing(kind(parts.netloc, timeout=SECONDS)) as connection:
            connection.request(method, f"/sandbox/{path}", json.dumps(body))
            answer = connection.getresponse()
            content = answer.read().decode()
        if answer.status != 200:
            raise SandboxError(f"{method} {path}: {content}")
        return json.loads(content)

    def register(
        self,
        redirect_uris: Sequence[str],
        *,
        environment: str = "test",
        document_key: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Register an application. Returns its settings for ``DJANGO_IDENTITY``.

        ``document_key``: a public JWK, which approves the application for the trusted tier.
        """
        registered = self.control(
            "POST",
            "applications",
            redirect_uris=list(redirect_uris),
        )
        if document_key is not None:
            path = f"applications/{registered['app_id']}/trusted-tier"
            self.control("POST", path, document_key=dict(document_key))
        return {
            "ENVIRONMENT": environment,
            "BASE_URL": self.base_url,
            "AUTH_URL": self.auth_url,
            "CLIENT_ID": registered[environment]["client_id"],
            "CLIENT_SECRET": registered[environment]["client_secret"],
            "DOCUMENT_PATHS": DOCUMENT_PATHS,
        }

    def create_person(self, *, verified: bool = True, **account: Any) -> SandboxPerson:
        """Create an account. ``account``: members of ``POST users`` of the control API."""
        person = self.control("POST", "users", verified=verified, **account)
        return SandboxPerson(person["user_id"], person["email"], person["password"])

    def approve(self, authorization_url: str, person: SandboxPerson) -> str:
        """Sign ``person`` in at the sandbox and approve. Returns the callback address."""
        decided = {"url": authorization_url, "user_id": person.user_id}
        return str(self.control("POST", "authorizations", **decided)["callback"])

    def revoke_claim(self, person: SandboxPerson, claim_type: str) -> None:
        """``person`` revokes a claim on the account page."""
        self._of(person, f"claims/{claim_type}/revoke")

    def revoke_consent(self, person: SandboxPerson) -> None:
        """``person`` revokes the consent of every application."""
        for client_id in self.control("GET", f"users/{quote(person.user_id)}")[
            "consents"
        ]:
            self._of(person, f"consents/{client_id}/revoke")

    def connect_code(self, person: SandboxPerson) -> str:
        """``person`` makes a Connect code."""
        return str(
            self.control("POST", "connect-codes", user_id=person.user_id)["code"],
        )

    def request_deletion(self, person: SandboxPerson) -> None:
        """``person`` asks for deletion, and confirms it."""
        self._of(person, "deletion")

    def fail_next(
        self,
        endpoint: str,
        kind: str = "status",
        *,
        times: int = 1,
        **how: float,
    ) -> None:
        """Let the next requests to ``endpoint`` fail, by default with the status 500.

        ``endpoint``, ``kind`` and ``how`` are those of ``POST faults`` of the control API.
        """
        self.control("POST", "faults", kind=kind, endpoint=endpoint, times=times, **how)

    def settle(self, client_id: str) -> None:
        """Wait until ``client_id``'s site has acknowledged every event. Raises ``SandboxError``."""
        deadline = time.monotonic() + SECONDS
        while waiting := self._waiting(client_id):
            attempts = [attempt for _type, tries in waiting for attempt in tries]
            is_refused = any(attempt["status"] != 200 for attempt in attempts)
            if is_refused or time.monotonic() > deadline:
                raise SandboxError(f"not acknowledged: {waiting}")
            time.sleep(PAUSE)

    def _waiting(self, client_id: str) -> list[tuple[str, list[dict[str, Any]]]]:
        """Type and attempts of each event that the site has yet to acknowledge."""
        return [
            (delivery["event_type"], delivery["attempts"])
            for delivery in self.control("GET", "deliveries")
            if delivery["client_id"] == client_id and delivery["state"] != "delivered"
        ]

    def _of(self, person: SandboxPerson, path: str) -> None:
        self.control("POST", f"users/{quote(person.user_id)}/{path}")


@contextmanager
def running_sandbox(*options: str) -> Iterator[RunningSandbox]:
    """Run a sandbox on a free port, with command-line ``options``, until the block ends."""
    try:
        # It would say so itself, but not to the caller of this function.
        socket.create_server(("127.0.0.1", 0)).close()
    except OSError as error:
        raise SandboxError(
            f"The sandbox finds no free port here: {error.strerror}.",
        ) from None

    command = [sys.executable, "-m", "django_identity.sandbox", "--port", "0", *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)  # noqa: S603  our own
    with process:
        try:
            values = _read_announcement(process)
            api = values["API base"]
            server = values["Authorization server"]
            yield RunningSandbox(api, server, values["Portal session token"])
        finally:
            process.terminate()
            # After Ctrl-C the block itself would not wait for it.
            process.wait()


def _read_announcement(process: subprocess.Popen[str]) -> dict[str, str]:
    """What the process prints before "Ready.": a name and a value in each line."""
    values: dict[str, str] = {}
    for line in process.stdout or ():
        if line == "Ready.\n":
            return values
        name, _, value = line.strip().rpartition("  ")
        values[name.strip()] = value
    raise SandboxError(
        f"the sandbox ended with {process.wait()}; is its extra installed?",
    )
