"""A credential taken apart: header, payload, disclosures with their digests, and what is wrong."""

import base64
import hashlib
import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.utils.translation import gettext as _
from jwcrypto.common import JWException
from jwcrypto.jwk import JWK
from jwcrypto.jws import JWS

from django_identity.sandbox.instruments import clock
from django_identity.sandbox.keys import key_set


class NotACredential(ValueError):
    """The text cannot be read as a credential. The message says why."""


@dataclass(frozen=True, slots=True)
class Disclosure:
    """One disclosure as it was transmitted, with its digest."""

    text: str
    content: str
    digest: str
    is_listed: bool


@dataclass(frozen=True, slots=True)
class Finding:
    """One check of the credential, in words."""

    holds: bool
    words: str


@dataclass(frozen=True, slots=True)
class Inspection:
    """What a credential contains and what an application would find."""

    header: str
    payload: str
    disclosures: list[Disclosure]
    undisclosed: int
    findings: list[Finding]


def inspect(credential: str) -> Inspection:
    """Take ``credential`` apart.

    Raises:
        NotACredential: it is no signed token followed by disclosures.
    """
    token, *parts = "".join(credential.split()).split("~")
    header, payload = _members(token, 0), _members(token, 1)
    listed = payload.get("_sd")
    digests = [each for each in listed if isinstance(each, str)] if isinstance(listed, list) else []
    disclosures = [_disclosure(text, digests) for text in parts if text]
    findings = [
        _signature(token, header),
        _expiry(payload),
        Finding(
            all(each.is_listed for each in disclosures),
            _("Every disclosure's digest is listed in _sd."),
        ),
        Finding(bool(parts) and not parts[-1], _("The credential ends with ~.")),
    ]
    return Inspection(
        header=_readable(header),
        payload=_readable(payload),
        disclosures=disclosures,
        undisclosed=len(set(digests) - {each.digest for each in disclosures}),
        findings=findings,
    )


def _members(token: str, place: int) -> dict[str, Any]:
    """Return the JSON object that is one part of the signed token."""
    parts = token.split(".")
    if len(parts) != 3:
        raise NotACredential(_("The signed token does not have three parts separated by dots."))
    try:
        members = json.loads(_decoded(parts[place]))
    except (ValueError, RecursionError) as error:
        raise NotACredential(_("A part of the signed token is not base64url of JSON.")) from error
    if not isinstance(members, dict):
        raise NotACredential(_("A part of the signed token is not a JSON object."))
    return members


def _disclosure(text: str, digests: list[str]) -> Disclosure:
    """Read one disclosure; its content is shown whatever it is."""
    try:
        content = _readable(json.loads(_decoded(text)))
    except (ValueError, RecursionError):
        content = _("not base64url of JSON")
    hashed = hashlib.sha256(text.encode()).digest()
    digest = base64.urlsafe_b64encode(hashed).decode().rstrip("=")
    return Disclosure(text, content, digest, digest in digests)


def _signature(token: str, header: dict[str, Any]) -> Finding:
    """Check the signature with the published key that the header names."""
    keys = [key for key in key_set.published()["keys"] if key["kid"] == header.get("kid")]
    if not keys:
        return Finding(False, _("No published key has the header's kid."))
    words = _("The signature is right, by the published key with the header's kid.")
    try:
        JWS.from_jose_token(token).verify(JWK(**keys[0]), alg="ES256")
    except (JWException, ValueError):
        return Finding(False, _("The signature is wrong."))
    return Finding(True, words)


def _expiry(payload: dict[str, Any]) -> Finding:
    """Compare the expiry with the sandbox's clock."""
    try:
        expires_at = datetime.fromtimestamp(payload["exp"], UTC)
    except (KeyError, TypeError, ValueError, OverflowError, OSError):
        return Finding(False, _("The payload has no readable expiry."))
    at = expires_at.strftime("%Y-%m-%d %H:%M:%S UTC")
    if expires_at <= clock.now():
        return Finding(False, _("It expired on %(at)s.") % {"at": at})
    return Finding(True, _("It is valid until %(at)s.") % {"at": at})


def _decoded(text: str) -> bytes:
    return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)


def _readable(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)
