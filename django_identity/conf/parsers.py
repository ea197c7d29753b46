"""The parsers of the keys: each returns the value for ``Application`` or raises ``ValueError``."""

import re
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

from django_identity.secrets import Secret
from django_identity.strict_json import JSONObject

Parser = Callable[[Any], Any]
MEMBER_PATH = r"[^.\s]+(?:\.[^.\s]+)*"


def _valid(value: Any, is_valid: object) -> Any:
    if not is_valid:
        raise ValueError
    return value


def text(value: Any) -> str:
    is_text = isinstance(value, str) and value.strip() and value.isprintable()
    return str(_valid(value, is_text))


def secret(value: object) -> Secret:
    return Secret(text(value))


def matching(pattern: str) -> Parser:
    return lambda value: _valid(value, re.fullmatch(pattern, text(value)))


def list_of(parser: Parser, *, least: int = 0) -> Parser:
    def parse_all(value: Any) -> tuple[Any, ...]:
        is_long_enough = isinstance(value, (list, tuple)) and len(value) >= least
        return tuple(map(parser, _valid(value, is_long_enough)))

    return parse_all


def between(least: Any, most: Any, *types: type) -> Parser:
    return lambda value: _valid(value, type(value) in types and least <= value <= most)


def address(value: object) -> str:
    parts = urlsplit(text(value))
    has_more = parts.query or parts.fragment or parts.username or parts.password
    # What is no port raises ``ValueError``.
    has_server = (
        parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    )
    return str(_valid(value, has_server and not has_more))


def base(value: object) -> str:
    """A base address, to which paths are added."""
    return address(value).rstrip("/")


def is_document_key(key: JSONObject) -> bool:
    """Whether this is a private JWK with a ``kid``, for one algorithm (RFC 8725 §3.1)."""
    texts = [key.get(name) for name in ("kid", "alg", "kty", "d")]
    is_strong = {
        "RSA": len(str(key.get("n"))) >= SHORTEST_MODULUS,
        "EC": key.get("crv") in CURVES,
    }
    return (
        all(isinstance(text, str) and text for text in texts)
        and key.get("use", "enc") == "enc"
        and key["alg"] in DOCUMENT_ALGORITHMS.get(key["kty"], ())
        and is_strong[key["kty"]]
    )


def document_key(value: object) -> Any:
    return _valid(value, isinstance(value, Mapping) and is_document_key(value))


def paths_of_documents(value: Any) -> Mapping[str, str]:
    """Paths below ``BASE_URL``, each with ``{subject}`` once."""
    _valid(value, isinstance(value, Mapping) and value.keys() <= DOCUMENT_SCOPES)
    return {scope: _document_path(path) for scope, path in value.items()}


DOCUMENT_SCOPES = {"documents:metadata", "documents:read"}
_document_path = matching(r"(?a:(?:/\w[\w.~-]*)*/\{subject\}(?:/\w[\w.~-]*)*)")
# By the type of the key. RSA-OAEP (SHA-1) is only for a site whose key says so.
DOCUMENT_ALGORITHMS = {
    "RSA": ("RSA-OAEP-256", "RSA-OAEP"),
    "EC": ("ECDH-ES", "ECDH-ES+A128KW", "ECDH-ES+A256KW"),
}
SHORTEST_MODULUS = 342  # 2048 bits in base64url
CURVES = ("P-256", "P-384", "P-521")
ALGORITHMS = ", ".join(map(", ".join, DOCUMENT_ALGORITHMS.values()))
PRIVATE_JWKS = f"a list of private JWKs, each with kid and alg ({ALGORITHMS})"
PATHS = "a dict from documents:metadata and documents:read to paths with {subject}"
