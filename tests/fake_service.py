"""``FakeService``: a real server on loopback that plays the spec, and misbehaves on demand.

By default a whole sign-in of ``subject`` succeeds. ``service.answers["token"] = html()`` replaces
one endpoint's answer (``token``, ``profile``, ``me``, ``kyc``, ``claims``, ``jwks``, or Connect's
``request``): by raw bytes, a dict for the JSON body, or a function that gets the socket.
``service.requests``: what arrived.
Refresh tokens rotate and are good for once; ``service.refresh_tokens``: those that were presented.
``service.meanwhile["token"] = work`` is done after the request arrived and before the answer.
"""

import json
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qs

from cryptography.hazmat.primitives.asymmetric import ec
from django.db import connections
from django.test import override_settings

from tests.credentials import issuer

# Not those of the testing kit: a worker's app imports this before Django is set up.
DOCUMENT_PATHS = {
    "documents:metadata": "/users/{subject}/documents/metadata",
    "documents:read": "/users/{subject}/documents",
}
# A good answer gets there on the busiest machine; a bad one is waited for as long as it takes.
PATIENCE, IMPATIENCE = 30.0, 1.0
Answer = bytes | dict[str, Any] | Callable[[socket.socket], None]
PROFILE = {
    "first_name": "Ada",
    "last_name": "Obi",
    "email": "ada@example.org",
    "country": "NG",
}
KYC = {
    "kyc_level": "level_2",
    "status": "verified",
    "provider": "KYC",
    "verified_at": "2026-11-01T10:00:00Z",
}


def http(body: bytes, *, status: str = "200 OK", headers: str = "") -> bytes:
    head = f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n{headers}\r\n"
    return head.encode() + body


def answer(body: object, *, status: str = "200 OK") -> bytes:
    return http(json.dumps(body).encode(), status=status)


def refusal(code: str, status: str = "400 Bad Request", **beside: object) -> bytes:
    """The service's no, in its envelope."""
    return answer({"success": False, "error": {"code": code}, **beside}, status=status)


REJECTED = refusal("x", "401 Unauthorized")
INVALID_GRANT = answer({"error": "invalid_grant"}, status="400 Bad Request")


@dataclass
class FakeService:
    client_id: str = "test-client"
    subject: str = "subject-1"
    profile: dict[str, Any] = field(default_factory=dict)
    token: dict[str, Any] = field(default_factory=dict)
    kyc: dict[str, Any] = field(default_factory=dict)
    connect: dict[str, Any] = field(default_factory=dict)
    payload: dict[str, Any] = field(default_factory=dict)
    disclosed: dict[str, Any] = field(default_factory=lambda: {"age_over_18": True})
    claims_user_id: str | None = None
    answers: dict[str, Answer] = field(default_factory=dict)
    requests: list[tuple[str, str, bytes]] = field(default_factory=list)
    refresh_tokens: list[str] = field(default_factory=list)
    meanwhile: dict[str, Callable[[], None]] = field(default_factory=dict)
    bend: Callable[[str], str] = lambda credential: credential

    def __post_init__(self) -> None:
        self.key = ec.generate_private_key(ec.SECP256R1())
        self._counting = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.origin = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self) -> None:
        # Closing alone would not wake the thread that waits for the next caller.
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def settings(self, **changes: Any) -> dict[str, Any]:
        return {
            "ENVIRONMENT": "test",
            "BASE_URL": f"{self.origin}/api/v1",
            "AUTH_URL": self.origin,
            "CLIENT_ID": self.client_id,
            "CLIENT_SECRET": "a-client-secret-for-tests-alone",
            "WEBHOOK_SECRETS": ["a-webhook-secret-for-tests-alone"],
            "TIMEOUT": PATIENCE,
            "DOCUMENT_PATHS": DOCUMENT_PATHS,
            **changes,
        }

    def calls(self, endpoint: str) -> int:
        return sum(1 for name, _, _ in self.requests if name == endpoint)

    def newest(self, endpoint: str) -> str:
        """The path of the newest request there; another endpoint may have had one since."""
        return [target for name, target, _ in self.requests if name == endpoint][-1]

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                caller = self._listener.accept()[:1]
                threading.Thread(target=self._answer, args=caller, daemon=True).start()

    def _answer(self, connection: socket.socket) -> None:
        try:
            with connection, suppress(OSError, IndexError):
                raw = self._read(connection)
                target = raw.split(b" ", 2)[1].decode()
                name = self._name(target)
                self.requests.append((name, target, raw))
                good = self.good(name)
                if b"grant_type=refresh_token" in raw:
                    good = self._refreshed(raw)
                self.meanwhile.get(name, lambda: None)()
                given = self.answers.get(name, good)
                if callable(given):
                    given(connection)
                else:
                    is_raw = isinstance(given, bytes)
                    connection.sendall(given if is_raw else answer(given))
        finally:
            # An answer may have used the database, in this thread of its own.
            connections.close_all()

    @staticmethod
    def _read(connection: socket.socket) -> bytes:
        """The next request, or nothing if the caller has gone."""
        raw, length = b"", 0
        while (end := raw.find(b"\r\n\r\n")) < 0 or len(raw) < end + 4 + length:
            if not (chunk := connection.recv(65536)):
                return b""
            raw += chunk
            for line in raw.partition(b"\r\n\r\n")[0].lower().split(b"\r\n"):
                if line.startswith(b"content-length:"):
                    length = int(line.split(b":")[1])
        return raw

    @staticmethod
    def _name(target: str) -> str:
        path = target.split("?")[0]
        if path.endswith("/users/me/profile"):
            return "me"
        return "jwks" if path.endswith("jwks.json") else path.rsplit("/", 1)[1]

    def good(self, name: str) -> Answer:
        if name == "token":
            return self._tokens("secret")
        if name == "jwks":
            return {"keys": [self.jwk()]}
        if name == "request":
            held = self.connect_result()
        elif name in ("profile", "me"):
            about = {"id": self.subject, "kyc_level": "level_2"}
            held = about | PROFILE | self.profile
        elif name == "kyc":
            held = KYC | self.kyc
        else:
            listed = {"provider": "KYC", "revoked": False}
            held = {
                "user_id": self.claims_user_id or self.subject,
                "claims": [{"claim_type": name, **listed} for name in self.disclosed],
                "credential": self.bend(self.credential()),
                "credential_format": "dc+sd-jwt",
            }
        return {"success": True, "data": held}

    def _tokens(self, number: object) -> dict[str, Any]:
        return {
            "access_token": f"at-{number}",
            "refresh_token": f"rt-{number}",
            "expires_in": 3600,
            "token_type": "Bearer",
            **self.token,
        }

    def connect_result(self) -> dict[str, Any]:
        issued_at = datetime.now(UTC).isoformat().replace("+00:00", "Z")
        return {
            "status": "approved",
            "request_id": "req_1",
            "user_id": self.subject,
            "data": {"profile": dict(PROFILE), "kyc": dict(KYC)},
            "issued_at": issued_at,
            "signature": "a-signature",
            **self.connect,
        }

    def _refreshed(self, raw: bytes) -> Answer:
        form = parse_qs(raw.partition(b"\r\n\r\n")[2].decode())
        with self._counting:
            self.refresh_tokens += form["refresh_token"]
            number = len(self.refresh_tokens)
            if self.refresh_tokens[-1] in self.refresh_tokens[:-1]:
                return INVALID_GRANT
        return self._tokens(number)

    def jwk(self) -> dict[str, Any]:
        return issuer.jwk("k1", self.key, use="sig")

    def credential(self) -> str:
        disclosures = [issuer.disclose(*each) for each in self.disclosed.items()]
        now = int(time.time())
        payload = issuer.without_absent(
            {
                "iss": self.origin,
                "aud": self.client_id,
                "sub": self.subject,
                "environment": "test",
                "iat": now,
                "exp": now + 86400,
                "_sd": [issuer.digest(each) for each in disclosures],
                **self.payload,
            },
        )
        return issuer.join(self.signed(issuer.header(kid="k1"), payload), disclosures)

    def identity_token(self, subject: str, *, head: Any = None, **changes: Any) -> str:
        """An ID token of this service about ``subject``, or what ``changes`` make of it."""
        now = int(time.time())
        payload = {
            "iss": self.origin,
            "aud": self.client_id,
            "sub": subject,
            "exp": now + 300,
            "iat": now,
            **changes,
        }
        header = {"alg": "ES256", "typ": "JWT", "kid": "k1", **(head or {})}
        return self.signed(header, payload)

    def signed(self, header: dict[str, Any], payload: dict[str, Any]) -> str:
        return issuer.token(header, payload, self.key)


@contextmanager
def serving(**fields: Any) -> Iterator[FakeService]:
    service = FakeService(**fields)
    try:
        yield service
    finally:
        service.close()


def impatient(service: FakeService) -> override_settings:
    """The site gives up early, in tests of answers that never come."""
    return override_settings(DJANGO_IDENTITY=service.settings(TIMEOUT=IMPATIENCE))


# Ways to misbehave

BROKEN_OFF = b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{"


def html(status: str = "200 OK") -> bytes:
    is_html = "Content-Type: text/html\r\n"
    return http(b"<html><b>oops</b></html>", status=status, headers=is_html)


def truncated(connection: socket.socket) -> None:
    connection.sendall(BROKEN_OFF + b'"access_token": "a')


def silent(connection: socket.socket) -> None:
    connection.settimeout(60)
    connection.recv(1)


def reset(connection: socket.socket) -> None:
    connection.sendall(BROKEN_OFF)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def dribble_body(connection: socket.socket) -> None:
    connection.sendall(BROKEN_OFF)
    for _ in range(400):
        connection.sendall(b" ")
        time.sleep(0.1)


def huge(connection: socket.socket) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")
    for _ in range(60):
        connection.sendall(b" " * 1024 * 1024)


def redirect_to(origin: str, status: int) -> bytes:
    location = f"Location: {origin}/oauth2/token\r\n"
    return http(b"", status=f"{status} Moved", headers=location)
