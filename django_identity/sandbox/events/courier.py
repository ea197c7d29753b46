"""Sign and send one webhook request, and record the answer (spec: Webhook signature)."""

import hashlib
import hmac
import secrets
import ssl
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import httpx

from django_identity.sandbox.events import problems
from django_identity.sandbox.events.addresses import PrivateAddress, addresses_of, is_public
from django_identity.sandbox.events.time_limit import TimeLimit

SIGNATURE_HEADER = "x-webhook-signature"
EXCERPT_BYTES = 2_000
# Loading the certificates takes 20 ms, and each sending thread has its own courier.
_TLS = httpx.create_ssl_context(trust_env=False)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of one request. Without an answer ``status`` is None and ``problem`` says why.

    For a redirect ``problem`` says that it is not followed.
    """

    headers: Mapping[str, str]
    status: int | None
    excerpt: str
    problem: str
    milliseconds: float
    is_private: bool = False

    @property
    def acknowledged(self) -> bool:
        """Whether the receiver acknowledged the event: any 2xx."""
        return self.status is not None and 200 <= self.status < 300


def sign(body: bytes, secret: str) -> str:
    """Return the lowercase hexadecimal HMAC-SHA-256 of ``body``."""
    return hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


def new_secret() -> str:
    """Return a random webhook secret."""
    return f"whsec_{secrets.token_urlsafe(32)}"


def trusting(ca_file: Path) -> ssl.SSLContext:
    """Return what trusts the authorities in ``ca_file`` beside the public ones.

    Raises:
        ValueError: the file cannot be read, or holds no certificate.
    """
    context = httpx.create_ssl_context(trust_env=False)
    try:
        context.load_verify_locations(ca_file)
    except OSError as error:
        raise ValueError(f"{ca_file} cannot be used: {error}.") from error
    return context


class Courier:
    """Sends requests: follows no redirect, reuses no connection, uses no proxy."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        # If the receiver closed a reused connection at the same time, it would look like a failure.
        limits = httpx.Limits(max_keepalive_connections=0)
        self._client = httpx.Client(
            verify=tls or _TLS, limits=limits, trust_env=False, follow_redirects=False
        )

    def send(
        self, url: str, body: bytes, *, secret: str, seconds: float, privately: bool
    ) -> Outcome:
        """Sign ``body`` and post it, with a time-out of ``seconds`` for the whole request.

        Answers and failures are returned, never raised. Without ``privately``, nothing is sent to a
        host with a private IP address.
        """
        headers = {
            "Content-Type": "application/json",
            "User-Agent": "Sandbox-Identity-Webhooks",
            "Accept-Encoding": "identity",
            SIGNATURE_HEADER: sign(body, secret),
        }
        started = time.monotonic()
        status, excerpt, problem = None, b"", ""
        is_private = privately
        try:
            to = httpx.URL(url)
            hosts = addresses_of(to.raw_host.decode(), to.port or 0)
            is_private = not all(map(is_public, hosts))
            if is_private and not privately:
                raise PrivateAddress
            status, excerpt = self._answer(to, hosts, body, headers, seconds)
            problem = problems.REDIRECT if 300 <= status < 400 else ""
        except httpx.TimeoutException:
            problem = problems.NO_ANSWER % {"seconds": f"{seconds:g}"}
        except PrivateAddress:
            problem = problems.PRIVATE
        except (httpx.ConnectError, OSError):
            problem = problems.NO_CONNECTION
        except (httpx.HTTPError, httpx.InvalidURL, ValueError):
            problem = problems.INCOMPLETE
        milliseconds = round((time.monotonic() - started) * 1000, 1)
        answer = excerpt.decode(errors="replace")
        return Outcome(headers, status, answer, problem, milliseconds, is_private)

    def _answer(
        self,
        url: httpx.URL,
        hosts: Sequence[str],
        body: bytes,
        headers: Mapping[str, str],
        seconds: float,
    ) -> tuple[int, bytes]:
        """Return the status, and the beginning of the body.

        It connects to the first of ``hosts`` that accepts. The name is not resolved again, because
        it might then have another address than the checked one.
        """
        about = {"sni_hostname": url.raw_host.decode()}
        named = {**headers, "Host": url.netloc.decode()}
        with TimeLimit(seconds) as limit:
            for host in hosts:
                try:
                    with self._client.stream(
                        "POST",
                        url.copy_with(host=host),
                        content=body,
                        headers=named,
                        timeout=seconds,
                        extensions={**about, "trace": limit.notice},
                    ) as response:
                        return response.status_code, _beginning(response)
                except httpx.ConnectError:
                    if host == hosts[-1]:
                        raise
        raise httpx.ConnectError("The host has no address.")

    def close(self) -> None:
        self._client.close()


def _beginning(response: httpx.Response) -> bytes:
    """Read the beginning of the body, which is stored."""
    kept = b""
    for chunk in response.iter_bytes():
        kept += chunk
        if len(kept) >= EXCERPT_BYTES:
            break
    return kept[:EXCERPT_BYTES]
