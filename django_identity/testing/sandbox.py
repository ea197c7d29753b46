"""The sandbox as a separate process, and accounts there.

It needs the extra ``django-identity[sandbox]``. All requests go to the control API of the sandbox
(see ``docs/sandbox.md``).
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.error import HTTPError
from urllib.request import ProxyHandler, Request, build_opener

READY = "Ready."
SECONDS = 10.0
ADDRESSES = {"API base": "base_url", "Authorization server": "auth_url"}
PORTAL_TOKEN = "Portal session token"  # noqa: S105  what stands before it


class SandboxError(Exception):
    """The sandbox did not start, or refused a request."""


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
        request = Request(  # noqa: S310  an http address of our own
            f"{self.auth_url}/sandbox/{path}", method=method, data=json.dumps(body).encode()
        )
        try:
            with build_opener(ProxyHandler({})).open(request, timeout=SECONDS) as answer:
                return json.load(answer)
        except HTTPError as error:
            with error:
                raise SandboxError(f"{method} {path}: {error.read().decode()}") from None

    def register(
        self, redirect_uris: Sequence[str], *, environment: str = "test"
    ) -> dict[str, Any]:
        """Register an application. Returns its settings for ``DJANGO_IDENTITY``."""
        made = self.control("POST", "applications", redirect_uris=list(redirect_uris))
        return {
            "ENVIRONMENT": environment,
            "BASE_URL": self.base_url,
            "AUTH_URL": self.auth_url,
            "CLIENT_ID": made[environment]["client_id"],
            "CLIENT_SECRET": made[environment]["client_secret"],
        }

    def create_person(self, *, verified: bool = True, **account: Any) -> SandboxPerson:
        """Create an account. ``account``: members of ``POST users`` of the control API."""
        made = self.control("POST", "users", verified=verified, **account)
        return SandboxPerson(made["user_id"], made["email"], made["password"])

    def approve(self, authorization_url: str, person: SandboxPerson) -> str:
        """Sign ``person`` in at the sandbox and approve. Returns the callback address."""
        approved = self.control(
            "POST", "authorizations", url=authorization_url, user_id=person.user_id
        )
        return str(approved["callback"])


@contextmanager
def running_sandbox(*options: str) -> Iterator[RunningSandbox]:
    """Run a sandbox on a free port, with command-line ``options``, until the block ends."""
    command = [sys.executable, "-m", "django_identity.sandbox", "--port", "0", *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)  # noqa: S603  our own
    with process:
        try:
            yield RunningSandbox(**_announced(process))
        finally:
            process.terminate()


def _announced(process: subprocess.Popen[str]) -> dict[str, str]:
    """The lines that the process prints before "Ready.". Raises ``SandboxError`` if it ends."""
    said: dict[str, str] = {}
    for line in process.stdout or ():
        words, _, value = line.strip().rpartition("  ")
        if line.strip() == READY:
            return said
        if words.strip() in ADDRESSES:
            said[ADDRESSES[words.strip()]] = value
        elif words.strip() == PORTAL_TOKEN:
            said["portal_token"] = value
    raise SandboxError(f"the sandbox ended with {process.wait()}; is its extra installed?")
