"""What both providers serve beside OAuth: the user endpoints, the key set, and the credential.

Written after the specification with the ``sd-jwt`` package, and without a line of the sandbox.
"""

import time
from collections.abc import Callable, Mapping
from typing import Any

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.urls import path
from jwcrypto.jwk import JWK
from sd_jwt.common import SDObj
from sd_jwt.issuer import SDJWTIssuer

REDIRECT_URI = "http://testserver/identity/callback/"
# A subject is opaque text, whatever it holds.
SUBJECT = "Ünï/..%2F?#&=+ 'x' \"<b>\" \\ 😀"
VALUES = {"age_over_18": True, "country_resident": "NG", "unique_human": True}
KEY = JWK.generate(kty="EC", crv="P-256", kid="provider-1")

# Takes a request; returns the granted scopes of its Bearer token, or None.
ScopesOf = Callable[[HttpRequest], set[str] | None]


def urls_of(client: Mapping[str, str], scopes_of: ScopesOf) -> list[Any]:
    """The resources for the application ``client``, guarded by ``scopes_of``."""

    def user(request: HttpRequest, subject: str, what: str) -> HttpResponse:
        granted = scopes_of(request)
        if granted is None:
            return JsonResponse({"success": False, "error": {"code": "UNAUTHORIZED"}}, status=401)
        if f"{what}:read" not in granted or subject not in ("me", SUBJECT):
            return JsonResponse({"success": False, "error": {"code": "FORBIDDEN"}}, status=403)
        answers = {"profile": _profile, "kyc": _kyc, "claims": _claims}
        return JsonResponse({"success": True, "data": answers[what](client)})

    return [
        path("api/v1/users/<path:subject>/<str:what>", user),
        path(".well-known/jwks.json", lambda _request: JsonResponse(_key_set())),
    ]


def _profile(_client: Mapping[str, str]) -> dict[str, Any]:
    return {
        "id": SUBJECT, "email": "ada@example.org", "first_name": "Ada", "last_name": "Öbi",
        "country": "NG", "kyc_level": "level_2", "risk_score": 3,
    }  # fmt: skip


def _kyc(_client: Mapping[str, str]) -> dict[str, Any]:
    verified_at = "2026-11-01T10:00:00Z"
    return {
        "kyc_level": "level_2", "status": "verified", "verified_at": verified_at, "provider": "KYC",
    }  # fmt: skip


def _claims(client: Mapping[str, str]) -> dict[str, Any]:
    listed = [{"claim_type": name, "provider": "KYC", "revoked": False} for name in VALUES]
    return {
        "user_id": SUBJECT, "claims": listed, "credential": _credential(client),
        "credential_format": "dc+sd-jwt",
    }  # fmt: skip


def _credential(client: Mapping[str, str]) -> str:
    now = int(time.time())
    payload: dict[Any, Any] = {
        "iss": client["origin"], "aud": client["client_id"], "sub": SUBJECT, "environment": "test",
        "iat": now, "exp": now + 24 * 3600,
    }  # fmt: skip
    payload |= {SDObj(name): value for name, value in VALUES.items()}
    header = {"typ": "dc+sd-jwt", "kid": "provider-1"}
    issued: str = SDJWTIssuer(payload, KEY, extra_header_parameters=header).sd_jwt_issuance
    return issued


def _key_set() -> dict[str, Any]:
    return {"keys": [KEY.export_public(as_dict=True)]}
