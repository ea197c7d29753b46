"""The parsers of the keys: each returns the value for ``Application`` or raises ``ValueError``."""

import re
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

from django_identity.secrets import Secret
from django_identity.strict_json import JSONObject

Parser = Callable[[Any], Any]
MEMBER_PATH = r"[^.\s]+(?:\.[^.\s]+)*"


def _require(condition: object) -> None:
    if not condition:
        raise ValueError


def text(value: Any) -> str:
    _require(isinstance(value, str))
    _require(value and value.isprintable())
    # Of a file or an environment variable. Python's ``urlsplit`` would not see it.
    _require(value == value.strip())
    return str(value)


def secret(value: object) -> Secret:
    return Secret(text(value))


def matching(pattern: str) -> Parser:
    def parse(value: Any) -> str:
        _require(re.fullmatch(pattern, text(value)))
        return str(value)

    return parse


def list_of(parser: Parser, *, least: int = 0) -> Parser:
    def parse_all(value: Any) -> tuple[Any, ...]:
        _require(isinstance(value, (list, tuple)))
        _require(len(value) >= least)
        return tuple(map(parser, value))

    return parse_all


def between(least: Any, most: Any, *types: type) -> Parser:
    def parse(value: Any) -> Any:
        _require(type(value) in types)
        _require(least <= value <= most)
        return value

    return parse


def address(value: object) -> str:
    parts = urlsplit(matching(r"\S+")(value))
    _require(parts.scheme in ("http", "https"))
    # What is no port raises ``ValueError``.
    _require(parts.hostname and parts.port != 0)
    _require(not (parts.query or parts.fragment))
    _require(not (parts.username or parts.password))
    return str(value)


def base(value: object) -> str:
    """A base address, to which paths are added."""
    return address(value).rstrip("/")


def is_document_key(key: JSONObject) -> bool:
    """Whether this is a private JWK with a ``kid``, for one algorithm (RFC 8725 §3.1)."""
    for name in ("kid", "alg", "kty", "d"):
        member = key.get(name)
        if not isinstance(member, str) or not member:
            return False
    if key.get("use", "enc") != "enc":
        return False
    if key["alg"] not in DOCUMENT_ALGORITHMS.get(key["kty"], ()):
        return False
    if key["kty"] == "RSA":
        return len(str(key.get("n"))) >= SHORTEST_MODULUS
    return key.get("crv") in CURVES


def document_key(value: Any) -> Any:
    _require(isinstance(value, Mapping))
    _require(is_document_key(value))
    return value


def paths_of_documents(value: Any) -> Mapping[str, str]:
    """Paths below ``BASE_URL``, each with ``{subject}`` once."""
    _require(isinstance(value, Mapping))
    _require(value.keys() <= DOCUMENT_SCOPES)
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
