"""The public keys of trusted applications, and encrypting to them (RFC 7516, RFC 7518)."""

import json
from collections.abc import Mapping
from typing import Any

from jwcrypto.common import JWException
from jwcrypto.jwe import JWE
from jwcrypto.jwk import JWK

from django_identity.sandbox.server.marking import marked as _

# Algorithm -> the type of its keys.
ALGORITHMS = {"RSA-OAEP-256": "RSA", "ECDH-ES": "EC", "ECDH-ES+A256KW": "EC"}
SHORTEST_RSA_KEY = 2048
CONTENT_ENCRYPTION = "A256GCM"
LONGEST_KID = 200


class InvalidDocumentKey(ValueError):
    """This is not a public key that documents can be encrypted to. The message says why.

    ``text`` is the message before translation, for a page; ``values`` stand in its placeholders.
    """

    def __init__(self, text: str, **values: object) -> None:
        super().__init__(text % values)
        self.text = text
        self.values = values


def public_key(given: object) -> dict[str, Any]:
    """Return the JWK ``given`` if it is a public key with a ``kid`` and one algorithm.

    Raises:
        InvalidDocumentKey: the message says why.
    """
    if not isinstance(given, Mapping):
        raise InvalidDocumentKey(_("The key is a JWK: a JSON object."))
    kid, algorithm = given.get("kid"), given.get("alg")
    if not isinstance(kid, str) or not 0 < len(kid) <= LONGEST_KID:
        raise InvalidDocumentKey(_("The key needs a kid, by which you find its private part."))
    if not isinstance(algorithm, str) or given.get("kty") != ALGORITHMS.get(algorithm, ""):
        raise InvalidDocumentKey(
            _("alg is one of %(algorithms)s, and kty fits it."), algorithms=", ".join(ALGORITHMS)
        )
    try:
        key = JWK(**given)
        parts: dict[str, Any] = key.export_public(as_dict=True)
        encrypt(b"", parts)  # the library checks a key when it is used
    except (JWException, ValueError, TypeError) as error:
        raise InvalidDocumentKey(_("The key is not a valid JWK.")) from error
    if key.has_private:
        raise InvalidDocumentKey(
            _("This is your private key. Keep it, and register its public part.")
        )
    if parts["kty"] == "RSA" and key.get_op_key("encrypt").key_size < SHORTEST_RSA_KEY:
        raise InvalidDocumentKey(_("An RSA key has at least %(bits)s bits."), bits=SHORTEST_RSA_KEY)
    return parts


def encrypt(content: bytes, key: Mapping[str, Any]) -> str:
    """Encrypt ``content`` to the registered ``key``, in the compact serialisation."""
    header = {"alg": key["alg"], "enc": CONTENT_ENCRYPTION, "kid": key["kid"]}
    sealed = JWE(content, protected=json.dumps(header))
    sealed.add_recipient(JWK(**key))
    compact: str = sealed.serialize(compact=True)
    return compact
