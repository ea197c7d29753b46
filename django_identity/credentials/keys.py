"""The service's published keys, parsed once and strictly into loaded verification keys.

Which set is believed, for how long, and what follows an unknown ``kid``, is in
``lifecycle/said/key_sets.py``.
"""

from collections import Counter
from collections.abc import Mapping
from functools import partial
from typing import Any, Self

from cryptography.hazmat.primitives.asymmetric import ec

from django_identity import strict_json
from django_identity.credentials import base64url
from django_identity.exceptions import MalformedAnswer

MAX_OCTETS = 64 * 1024
MAX_KEYS = 32

_P = 0xFFFFFFFF00000001000000000000000000000000FFFFFFFFFFFFFFFFFFFFFFFF
_COORDINATE_CHARACTERS = 43
_malformed = partial(MalformedAnswer, endpoint="jwks")


class KeySet:
    """The usable keys of one JSON Web Key Set (RFC 7517), by ``kid``. Immutable.

    A key is usable only if it is clearly an ES256 verification key: ``kty`` is EC, ``crv`` is
    P-256, ``use``, ``key_ops`` and ``alg`` are absent or agree, there is no private part, the point
    is on the curve and canonical, and no other key for ES256 has the same ``kid``. Other keys are
    left out. A set of unusable keys alone is valid, and verifies nothing.
    """

    __slots__ = ("_by_kid",)

    def __init__(self, by_kid: Mapping[str, ec.EllipticCurvePublicKey]) -> None:
        self._by_kid = dict(by_kid)

    @classmethod
    def from_jwks(cls, document: object) -> Self:
        """The usable keys of a parsed document: an object with a list ``keys`` of at most 32.

        Raises only ``MalformedAnswer``. Prefer ``from_text`` for the text of a response: parsing
        hides repeated members.
        """
        entries = None
        if isinstance(document, Mapping):
            entries = document.get("keys")
        if not isinstance(entries, list | tuple) or len(entries) > MAX_KEYS:
            raise _malformed(f"not a list of at most {MAX_KEYS} keys")

        objects = [entry for entry in entries if isinstance(entry, Mapping)]
        named = [jwk for jwk in objects if isinstance(jwk.get("kid"), str)]
        # One name may stand for keys of several types (RFC 7517 §4.5).
        of_es256 = [jwk for jwk in named if _is_for_es256(jwk)]
        times = Counter(jwk["kid"] for jwk in of_es256)
        keys: dict[str, ec.EllipticCurvePublicKey] = {}
        for jwk in of_es256:
            key = _public_key(jwk)
            # Of two such keys with one name nobody can say which one signs.
            if key is not None and times[jwk["kid"]] == 1:
                keys[jwk["kid"]] = key
        return cls(keys)

    @classmethod
    def from_text(cls, text: str | bytes) -> Self:
        """Like ``from_jwks``, for the document's text: at most 64 KB of strict JSON in UTF-8.

        Raises only ``MalformedAnswer``.
        """
        if isinstance(text, str):
            # Lone surrogates pass here; the JSON reader refuses them.
            text = text.encode("utf-8", "surrogatepass")
        if len(text) > MAX_OCTETS:
            raise _malformed(f"over {MAX_OCTETS} bytes")
        try:
            document = strict_json.read(text)
        except strict_json.NotStrictJSON as unreadable:
            raise _malformed("not strict JSON") from unreadable
        return cls.from_jwks(document)

    def get(self, kid: str) -> ec.EllipticCurvePublicKey | None:
        """The key with exactly this ``kid``, or None."""
        return self._by_kid.get(kid)

    def __len__(self) -> int:
        return len(self._by_kid)

    def __repr__(self) -> str:
        return f"<KeySet {list(self._by_kid)}>"


def _is_for_es256(jwk: Mapping[Any, Any]) -> bool:
    """Whether ``jwk`` says that it verifies ES256."""
    if jwk.get("kty") != "EC" or jwk.get("crv") != "P-256":
        return False
    # A key for another use or algorithm must not verify credentials (RFC 7517 §4.2 to §4.4).
    if jwk.get("use", "sig") != "sig" or jwk.get("alg", "ES256") != "ES256":
        return False
    operations = jwk.get("key_ops", ["verify"])
    return isinstance(operations, list | tuple) and "verify" in operations


def _public_key(jwk: Mapping[Any, Any]) -> ec.EllipticCurvePublicKey | None:
    """The key in ``jwk``, or None if the key is unusable."""
    # With the private part in public, anybody could sign.
    if "d" in jwk:
        return None
    x = _coordinate(jwk.get("x"))
    y = _coordinate(jwk.get("y"))
    if x is None or y is None:
        return None
    try:
        return ec.EllipticCurvePublicNumbers(x, y, ec.SECP256R1()).public_key()
    except ValueError:  # not a point on the curve
        return None


def _coordinate(text: object) -> int | None:
    """A coordinate of a P-256 point (RFC 7518 §6.2.1.2), or None."""
    if (
        not isinstance(text, str)
        or len(text) != _COORDINATE_CHARACTERS
        or not text.isascii()
    ):
        return None
    octets = text.encode("ascii")
    if not base64url.is_valid(octets):
        return None
    number = int.from_bytes(base64url.decode(octets), "big")
    # cryptography accepts a coordinate outside the field if its remainder is valid.
    if number >= _P:
        return None
    return number
