"""A service for many subjects that answers at once and counts: tokens, KYC, claims, the key set.

The token of subject ``s`` in its generation ``n`` is ``rt-n-s`` (refresh) or ``at-n-s`` (access).
Refresh tokens rotate; the one before the newest is taken too, for an answer may have been lost.

``python -m tests.integration.counting_service [DELAY]`` prints its origin and serves until
its input ends.
"""

import json
import socket
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from urllib.parse import parse_qs, unquote

from tests.credentials.issuer import DISCLOSURES, join, jwk, payload, token
from tests.fake_service import FakeService

CLIENT_ID = "test-client"
CLAIM_TYPES = ("kyc_verified", "age_over_18", "country_resident", "unique_human")
KYC = {"kyc_level": "level_2", "status": "verified", "provider": "vendor"}
TOKEN_FACTS = {"expires_in": 3600, "token_type": "Bearer"}


@dataclass(frozen=True, slots=True)
class Seen:
    """One call: which endpoint, and what it was about: a subject or a refresh token."""

    endpoint: str
    about: str


@dataclass
class CountingService(FakeService):
    """``delay``: seconds before each answer. ``clock``: for dates. ``seen``: every call."""

    delay: float = 0.0
    clock: Callable[[], float] = time.time
    seen: list[Seen] = field(default_factory=list)
    generations: dict[str, int] = field(default_factory=lambda: defaultdict(int))

    def _answer(self, connection: socket.socket) -> None:
        """Answer one request after the other. A caller may go, perhaps killed."""
        with connection, suppress(OSError):
            while raw := self._read(connection):
                head, _, body = raw.partition(b"\r\n\r\n")
                told = json.dumps(
                    self._told(head.split(b" ", 2)[1].decode(), body),
                ).encode()
                time.sleep(self.delay)
                length = f"HTTP/1.1 200 OK\r\nContent-Length: {len(told)}\r\n\r\n"
                connection.sendall(length.encode() + told)

    def _told(self, target: str, body: bytes) -> dict[str, object]:
        segments = target.strip("/").split("/")
        if segments[-1] == "jwks.json":
            return {"keys": [jwk()]}
        if segments[-1] == "token":
            [presented] = parse_qs(body.decode())["refresh_token"]
            self.seen.append(Seen("token", presented))
            return self._rotated(presented)
        subject = unquote(segments[-2])
        self.seen.append(Seen(segments[-1], subject))
        if segments[-1] == "kyc":
            return {"success": True, "data": KYC}
        return {"success": True, "data": claims_of(subject, self.origin, self.clock())}

    def _rotated(self, presented: str) -> dict[str, object]:
        _, generation, subject = presented.split("-", 2)
        with self._counting:
            newest = self.generations[subject]
            if int(generation) not in (newest, newest - 1):
                return {"error": "invalid_grant"}
            newest = self.generations[subject] = int(generation) + 1
        suffix = f"{newest}-{subject}"
        return {
            "access_token": f"at-{suffix}",
            "refresh_token": f"rt-{suffix}",
            **TOKEN_FACTS,
        }


def setting(origin: str, **changes: object) -> dict[str, object]:
    """The setting of an application that calls the counting service there."""
    return {
        "ENVIRONMENT": "test",
        "BASE_URL": f"{origin}/api/v1",
        "AUTH_URL": origin,
        "API_ORIGIN": origin,
        "CLIENT_ID": CLIENT_ID,
        "CLIENT_SECRET": "a-client-secret-for-tests-alone",
        **changes,
    }


def claims_of(subject: str, origin: str, at: float) -> dict[str, object]:
    """The claims response, with a credential that was issued at that time."""
    now = int(at)
    body = payload(iss=origin, aud=CLIENT_ID, sub=subject, iat=now, exp=now + 86_400)
    listed = [
        {"claim_type": name, "provider": "", "revoked": False} for name in CLAIM_TYPES
    ]
    listed[0]["provider"] = "vendor"
    return {
        "user_id": subject,
        "claims": listed,
        "credential": join(token(body=body), DISCLOSURES),
        "credential_format": "dc+sd-jwt",
    }


def main(delay: str = "0") -> None:
    service = CountingService(delay=float(delay))
    sys.stdout.write(f"{service.origin}\n")
    sys.stdout.flush()
    sys.stdin.read()


if __name__ == "__main__":
    main(*sys.argv[1:])
