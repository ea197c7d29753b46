"""Real credentials of an issuer in this process, whose key the site trusts."""

import hashlib
import json
import secrets
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec
from django.contrib.auth.models import AbstractBaseUser
from django.utils import timezone
from jwt.algorithms import ECAlgorithm
from jwt.utils import base64url_encode

from django_identity import conf, database
from django_identity.credentials import KeySet
from django_identity.lifecycle.ground.verified import VerifiedAnswer
from django_identity.lifecycle.said import claims as proven
from django_identity.lifecycle.said import key_sets
from django_identity.models import LinkedIdentity
from django_identity.service.answers import ClaimsAnswer
from django_identity.testing.build import ADULT, LIFETIME, build_identity

KID = "in-process"


class Issuer:
    """Signs credentials for the site, in the form of the service."""

    def __init__(self) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        published = {
            **ECAlgorithm.to_jwk(self._key.public_key(), as_dict=True),
            "kid": KID,
        }
        self.keys = KeySet.from_jwks({"keys": [published]})

    def credential(
        self,
        subject: str,
        claims: Mapping[str, Any] = ADULT,
        *,
        lifetime: timedelta = LIFETIME,
        **payload: Any,
    ) -> str:
        """A credential with ``claims`` of ``subject``, good for the site's verification.

        ``payload``: members with other values, for credentials that the site must refuse.
        """
        registered = conf.application()
        now = timezone.now()
        key_sets.trust(registered, self.keys)
        disclosures = [_disclosure(name, value) for name, value in claims.items()]
        members = {
            "iss": registered.api_origin,
            "aud": registered.client_id,
            "sub": subject,
            "environment": registered.environment,
            "iat": int(now.timestamp()),
            "exp": int((now + lifetime).timestamp()),
            "_sd_alg": "sha-256",
            "_sd": sorted(map(_digest, disclosures)),
            **payload,
        }
        header = {"typ": "dc+sd-jwt", "kid": KID}
        signed = jwt.encode(members, self._key, algorithm="ES256", headers=header)
        return "".join(f"{part}~" for part in (signed, *disclosures))

    def link(
        self,
        user: AbstractBaseUser,
        claims: Mapping[str, Any] = ADULT,
        **columns: Any,
    ) -> LinkedIdentity:
        """Link ``user``, and store ``claims`` by a credential, verified as after a sign-in."""
        identity = build_identity(user, claims={}, **columns)
        self.give(identity, self.credential(identity.subject, claims))
        return identity

    def give(self, identity: LinkedIdentity, credential: str) -> None:
        """Store what ``credential`` proves, as after a re-fetch. Raises ``CredentialRejected``."""
        registered = conf.application()
        subject = identity.subject
        proof = key_sets.verify_credential(
            registered,
            credential,
            subject=subject,
            keys=self.keys,
        )
        answer = ClaimsAnswer(subject, claims=(), credential=credential)
        verified = VerifiedAnswer(answer, proof)
        columns = proven.identity_columns(verified, identity)
        identity.set_columns(columns)
        with database.atomic():
            identity.save(update_fields=columns)
            proven.write(identity, verified)


def _disclosure(name: str, value: Any) -> str:
    text = json.dumps([secrets.token_urlsafe(16), name, value])
    return base64url_encode(text.encode()).decode()


def _digest(disclosure: str) -> str:
    hashed = hashlib.sha256(disclosure.encode()).digest()
    return base64url_encode(hashed).decode()
