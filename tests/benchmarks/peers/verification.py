"""Verification of one credential: ``python -m …peers.verification``, prints JSON.

This package and ``sd-jwt`` check the signature and every disclosure. PyJWT, joserfc and Authlib
know no disclosures: they check the signature, issuer, audience and expiry of the same token alone.
Every credential of a pass is another one; keys are loaded beforehand.
"""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Callable
from typing import Any

import joserfc.jwk
import joserfc.jwt
import jwt

from tests.benchmarks.runner import seconds_of
from tests.benchmarks.verify import AUDIENCE, ISSUER, KEY, by_sd_jwt, issue, ours

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # its authors recommend joserfc, and still ship it
    from authlib import jose as authlib_jose

DISCLOSURES = (1, 4, 10, 100)
CREDENTIALS = 32
ROUNDS = 30
PUBLIC: dict[str, Any] = KEY.export_public(as_dict=True)


def by_pyjwt(credentials: list[str]) -> Callable[[], None]:
    key = jwt.PyJWK(PUBLIC, algorithm="ES256").key
    tokens = _tokens(credentials)

    def verify_each() -> None:
        for token in tokens:
            jwt.decode(token, key, algorithms=["ES256"], issuer=ISSUER, audience=AUDIENCE)

    return verify_each


def by_joserfc(credentials: list[str]) -> Callable[[], None]:
    key = joserfc.jwk.ECKey.import_key(PUBLIC)
    claims = joserfc.jwt.JWTClaimsRegistry(
        iss={"essential": True, "value": ISSUER}, aud={"essential": True, "value": AUDIENCE}
    )
    tokens = _tokens(credentials)

    def verify_each() -> None:
        for token in tokens:
            claims.validate(joserfc.jwt.decode(token, key, algorithms=["ES256"]).claims)

    return verify_each


def by_authlib(credentials: list[str]) -> Callable[[], None]:
    key = authlib_jose.JsonWebKey.import_key(PUBLIC)
    reader = authlib_jose.JsonWebToken(["ES256"])
    options = {
        "iss": {"essential": True, "value": ISSUER},
        "aud": {"essential": True, "value": AUDIENCE},
    }
    tokens = _tokens(credentials)

    def verify_each() -> None:
        for token in tokens:
            reader.decode(token, key, claims_options=options).validate()

    return verify_each


def _tokens(credentials: list[str]) -> list[str]:
    """The signed tokens alone: what these packages can read."""
    return [credential.partition("~")[0] for credential in credentials]


WHOLE = {"ours": ours, "sd_jwt": by_sd_jwt}
SIGNATURE = {"pyjwt": by_pyjwt, "joserfc": by_joserfc, "authlib": by_authlib}


def main() -> None:
    measured = {}
    for disclosures in DISCLOSURES:
        credentials = [issue(disclosures) for _ in range(CREDENTIALS)]
        contenders = {name: make(credentials) for name, make in (WHOLE | SIGNATURE).items()}
        seconds = seconds_of(contenders, rounds=ROUNDS, clock=time.process_time)
        measured[disclosures] = {
            name: {"cpu_ms": total / CREDENTIALS * 1000} for name, total in seconds.items()
        }
    print(json.dumps(measured))  # noqa: T201  the parent reads it


if __name__ == "__main__":
    main()
