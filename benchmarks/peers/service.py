"""The service that every site asks, as a process of its own: ``python -m …peers.service``.

It prints its origin. The answers are always the same person's. An ID token is in the answer of the
token endpoint only for a client that sent a nonce, and OpenID Connect has its own address of the
profile, because its client expects no envelope.
"""

import json
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs

import jwt
from jwcrypto.jwk import JWK
from sd_jwt.common import SDObj
from sd_jwt.issuer import SDJWTIssuer

from benchmarks.peers.sites import CLIENT_ID, CLIENT_SECRET, SUBJECT

PROFILE = {
    "id": SUBJECT,
    "email": "ada@example.org",
    "email_verified": True,
    "first_name": "Ada",
    "last_name": "Obi",
    "country": "NG",
    "kyc_level": "level_2",
}
KYC = {
    "kyc_level": "level_2",
    "status": "verified",
    "provider": "KYC",
    "verified_at": "2026-11-01T10:00:00Z",
}
KEY = JWK.generate(kty="EC", crv="P-256", kid="k1")


class Service(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = 65_536  # one packet for each answer

    def do_POST(self) -> None:
        sent = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
        self._answer(_tokens(sent["code"][0]))

    def do_GET(self) -> None:
        name = self.path.rsplit("/", 1)[1]
        if name == "userinfo":
            return self._answer({"sub": SUBJECT, **PROFILE})
        if name == "jwks.json":
            return self._answer({"keys": [KEY.export_public(as_dict=True)]})
        data = {"profile": PROFILE, "kyc": KYC}.get(name) or self._claims()
        return self._answer({"success": True, "data": data})

    def _claims(self) -> dict[str, Any]:
        now = int(time.time())
        signed = {
            "iss": f"http://127.0.0.1:{self.server.server_address[1]}",
            "aud": CLIENT_ID,
            "sub": SUBJECT,
            "environment": "test",
            "iat": now,
            "exp": now + 86_400,
            SDObj("age_over_18"): True,
        }
        header = {"typ": "dc+sd-jwt", "kid": "k1"}
        listed = {"claim_type": "age_over_18", "provider": "KYC", "revoked": False}
        return {
            "user_id": SUBJECT,
            "claims": [listed],
            "credential": SDJWTIssuer(
                signed,
                KEY,
                extra_header_parameters=header,
            ).sd_jwt_issuance,
            "credential_format": "dc+sd-jwt",
        }

    def _answer(self, members: dict[str, Any]) -> None:
        body = json.dumps(members).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing: standard error is for failures."""


def _tokens(code: str) -> dict[str, Any]:
    tokens = {
        "access_token": "an-access-token-of-some-length-0123456789abcdef",
        "refresh_token": "a-refresh-token-of-some-length-0123456789abcdef",
        "token_type": "Bearer",
        "expires_in": 3600,
    }
    if code != "a-code":
        payload = {"sub": SUBJECT, "nonce": code, "exp": int(time.time()) + 300}
        tokens["id_token"] = jwt.encode(payload, CLIENT_SECRET, algorithm="HS256")
    return tokens


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", 0), Service)
    print(f"http://127.0.0.1:{server.server_address[1]}", flush=True)  # noqa: T201  its job
    server.serve_forever()
