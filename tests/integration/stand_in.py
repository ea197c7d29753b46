"""A service for many subjects that answers at once and counts: tokens, KYC, claims, the key set.

The token of subject ``s`` in its generation ``n`` is ``rt-n-s`` (refresh) or ``at-n-s`` (access).
Refresh tokens rotate; the one before the newest is taken too, for an answer may have been lost. A
first path segment that is a number names the process that calls, so that who did what is known.

``python -m tests.integration.stand_in [DELAY]`` prints its origin and serves until its input
ends.
"""

import asyncio
import json
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import parse_qs, unquote

from tests.credentials.issuer import DISCLOSURES, join, jwk, payload, token

CLIENT_ID = "test-client"
CLAIM_TYPES = ("kyc_verified", "age_over_18", "country_resident", "unique_human")
KYC = {"kyc_level": "level_2", "status": "verified", "provider": "vendor"}
TOKEN_FACTS = {"expires_in": 3600, "token_type": "Bearer"}


@dataclass(frozen=True, slots=True)
class Seen:
    """One call: which endpoint, what it was about (a subject or a refresh token), who and when."""

    endpoint: str
    about: str
    process: int
    at: float


class StandIn:
    """``delay``: seconds before each answer. ``clock``: for dates. ``seen``: every call."""

    def __init__(self, *, delay: float = 0.0, clock: Callable[[], float] = time.time) -> None:
        self.delay = delay
        self._clock = clock
        self.seen: list[Seen] = []
        self._generations: dict[str, int] = defaultdict(int)
        self._loop = asyncio.new_event_loop()
        ready = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(ready,), daemon=True)
        self._thread.start()
        ready.wait()

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def _run(self, ready: threading.Event) -> None:
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(asyncio.start_server(self._serve, "127.0.0.1", 0))
        self.origin = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        ready.set()
        self._loop.run_forever()
        server.close()
        for task in asyncio.all_tasks(self._loop):
            task.cancel()
        self._loop.run_until_complete(asyncio.sleep(0))
        self._loop.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                length = 0
                for line in head.lower().split(b"\r\n"):
                    if line.startswith(b"content-length:"):
                        length = int(line.split(b":")[1])
                body = await reader.readexactly(length)
                answer = json.dumps(self._answer(head.split(b" ", 2)[1].decode(), body)).encode()
                if self.delay:
                    await asyncio.sleep(self.delay)
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(answer))
                writer.write(answer)
                await writer.drain()
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            # The caller has gone, perhaps killed.
            pass
        finally:
            writer.close()

    def _answer(self, target: str, body: bytes) -> dict[str, object]:
        first, _, rest = target.lstrip("/").partition("/")
        process = int(first) if first.isdigit() else 0
        segments = (rest if process else target).strip("/").split("/")
        if segments[-1] == "jwks.json":
            return {"keys": [jwk()]}
        if segments[-1] == "token":
            [presented] = parse_qs(body.decode())["refresh_token"]
            self._see("token", presented, process)
            return self._rotated(presented)
        subject = unquote(segments[-2])
        self._see(segments[-1], subject, process)
        if segments[-1] == "kyc":
            return {"success": True, "data": KYC}
        return {"success": True, "data": claims_of(subject, self.origin, self._clock())}

    def _see(self, endpoint: str, about: str, process: int) -> None:
        self.seen.append(Seen(endpoint, about, process, time.monotonic()))

    def _rotated(self, presented: str) -> dict[str, object]:
        _, generation, subject = presented.split("-", 2)
        newest = self._generations[subject]
        if int(generation) not in (newest, newest - 1):
            return {"error": "invalid_grant"}
        newest = self._generations[subject] = int(generation) + 1
        suffix = f"{newest}-{subject}"
        return {"access_token": f"at-{suffix}", "refresh_token": f"rt-{suffix}", **TOKEN_FACTS}


def setting(origin: str, process: int | None = None, **changes: object) -> dict[str, object]:
    """The setting of an application that calls the stand-in there, of that process."""
    base = origin if process is None else f"{origin}/{process}"
    return {
        "ENVIRONMENT": "test", "BASE_URL": f"{base}/api/v1", "AUTH_URL": base,
        "API_ORIGIN": origin, "CLIENT_ID": CLIENT_ID,
        "CLIENT_SECRET": "a-client-secret-for-tests-alone", **changes,
    }  # fmt: skip


def claims_of(subject: str, origin: str, at: float) -> dict[str, object]:
    """The claims response, with a credential that was issued at that time."""
    now = int(at)
    body = payload(iss=origin, aud=CLIENT_ID, sub=subject, iat=now, exp=now + 86_400)
    listed = [{"claim_type": name, "provider": "", "revoked": False} for name in CLAIM_TYPES]
    listed[0]["provider"] = "vendor"
    return {
        "user_id": subject,
        "claims": listed,
        "credential": join(token(body=body), DISCLOSURES),
        "credential_format": "dc+sd-jwt",
    }


def main(delay: str = "0") -> None:
    service = StandIn(delay=float(delay))
    sys.stdout.write(f"{service.origin}\n")
    sys.stdout.flush()
    sys.stdin.read()


if __name__ == "__main__":
    main(*sys.argv[1:])
