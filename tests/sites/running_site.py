"""The test's end of a site: its process, and what the sandbox does to it."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import httpx

from django_identity.testing.sandbox import RunningSandbox
from example_project.demo.processes import ROOT, free_port, running
from tests.sites.site_table import Site

WEBHOOK_SECRET = "a-webhook-secret-for-tests-of-sites"
SECONDS = 120.0
# For plain http; each client would load all certificates again, which takes longer than most steps.
TLS = httpx.create_ssl_context()


@dataclass(frozen=True)
class RunningSite:
    """A site that answers at ``address``, which has no slash at its end."""

    site: Site
    address: str
    sandbox: RunningSandbox
    client_id: str
    port: int
    environ: dict[str, str]

    @property
    def prefix(self) -> str:
        return urlsplit(self.address).path

    def new_client(self) -> httpx.Client:
        proxy = Proxy(self) if self.site.public else None
        return httpx.Client(
            trust_env=False,
            timeout=SECONDS,
            verify=TLS,
            transport=proxy,
        )

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """``manage.py`` with these arguments, as an operator or cron runs it."""
        return subprocess.run(
            [sys.executable, "-m", "django", *arguments],
            cwd=ROOT,
            env=self.environ,
            capture_output=True,
            text=True,
            timeout=SECONDS,
        )

    def do_upkeep(self) -> None:
        with self.new_client() as client:
            assert client.post(f"{self.address}/upkeep/").status_code == 200

    def settle(self) -> None:
        self.sandbox.settle(self.client_id)


class Proxy(httpx.HTTPTransport):
    """Ends TLS before the site and takes the prefix away, as a proxy in front of it does."""

    def __init__(self, site: RunningSite) -> None:
        super().__init__(verify=TLS)
        self._site = site

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        path = request.url.raw_path.removeprefix(self._site.prefix.encode())
        local = httpx.URL(f"http://127.0.0.1:{self._site.port}").copy_with(
            raw_path=path,
        )
        passed_on = httpx.Request(
            request.method,
            local,
            headers=request.headers,
            stream=request.stream,
        )
        passed_on.headers["X-Forwarded-Proto"] = request.url.scheme
        passed_on.headers["X-Forwarded-For"] = "203.0.113.7"
        return super().handle_request(passed_on)


@contextmanager
def running_site(
    site: Site,
    sandbox: RunningSandbox,
    folder: Path,
) -> Iterator[RunningSite]:
    port = free_port()
    local = f"http://127.0.0.1:{port}"
    address = site.public or local
    made = sandbox.control(
        "POST",
        "applications",
        redirect_uris=[f"{address}/identity/callback/"],
    )
    hook = {"url": f"{local}/identity/webhook/", "secret": WEBHOOK_SECRET}
    sandbox.control("POST", f"applications/{made['app_id']}/webhook", **hook)
    environ = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "tests.sites.settings",
        "SITE": site.name,
        "SITE_FOLDER": str(folder),
        "SITE_BASE_URL": sandbox.base_url,
        "SITE_AUTH_URL": sandbox.auth_url,
        "SITE_CLIENT_ID": made["test"]["client_id"],
        "SITE_CLIENT_SECRET": made["test"]["client_secret"],
        "SITE_WEBHOOK_SECRET": WEBHOOK_SECRET,
    }
    command = ("-m", "tests.sites.serve", site.server, str(port))
    with running(*command, ready_at=local, env=environ, is_loud=True):
        yield RunningSite(
            site,
            address,
            sandbox,
            environ["SITE_CLIENT_ID"],
            port,
            environ,
        )
