"""A report on a key set for operators: its keys by name and thumbprint, and warnings."""

import base64
import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from django_identity import strict_json
from django_identity.credentials.keys import KeySet

MOST_EXPECTED: Final = 5
LONGEST_KID: Final = 100
THUMBPRINT_MEMBERS: Final[Mapping[str, tuple[str, ...]]] = {
    "EC": ("crv", "kty", "x", "y"),
    "OKP": ("crv", "kty", "x"),
    "RSA": ("e", "kty", "n"),
}
"""By ``kty``: what goes into a thumbprint, in its order (RFC 7638 §3.2, RFC 8037 §2)."""


@dataclass(frozen=True, slots=True)
class ReportedKey:
    """One entry of a key set. ``thumbprint``: RFC 7638 with SHA-256, or empty."""

    kid: str
    thumbprint: str
    is_usable: bool


@dataclass(frozen=True, slots=True)
class KeyReport:
    """All entries of a key set, and one sentence for each warning."""

    keys: tuple[ReportedKey, ...]
    warnings: tuple[str, ...]


def report(text: str) -> KeyReport:
    """Report on the text of a key set. Raises ``MalformedAnswer`` if the text is not a key set."""
    usable = KeySet.from_text(text)
    entries = [
        entry for entry in strict_json.read(text.encode())["keys"] if isinstance(entry, Mapping)
    ]
    keys = tuple(
        ReportedKey(_kid(entry), thumbprint(entry), usable.get(_text(entry, "kid")) is not None)
        for entry in entries
    )
    return KeyReport(keys, (*_about_entries(entries), *_about_the_set(keys)))


def thumbprint(jwk: Mapping[str, Any]) -> str:
    """The thumbprint, independent of ``kid``: SHA-256 over the required members (RFC 7638)."""
    names = THUMBPRINT_MEMBERS.get(_text(jwk, "kty"), ())
    members = {name: jwk.get(name) for name in names}
    if not members or not all(isinstance(member, str) for member in members.values()):
        return ""
    spelt = json.dumps(members, separators=(",", ":"), ensure_ascii=False)
    digest = hashlib.sha256(spelt.encode()).digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


def _about_entries(entries: list[Mapping[str, Any]]) -> Iterator[str]:
    for entry in entries:
        name = json.dumps(_kid(entry))
        if "d" in entry:
            yield f"key {name} is published with its private part: it is not used, and is lost"
        if entry.get("use", "sig") != "sig":
            yield f"key {name} is not for signatures"


def _about_the_set(keys: tuple[ReportedKey, ...]) -> Iterator[str]:
    if not any(key.is_usable for key in keys):
        yield "no key is usable: every credential will be rejected"
    if len(keys) > MOST_EXPECTED:
        yield f"there are {len(keys)} keys, more than a rotation needs"
    for kid, times in Counter(key.kid for key in keys).items():
        if times > 1:
            yield f"the name {json.dumps(kid)} is used {times} times: none of them is used"
    named: dict[str, set[str]] = {}
    for key in keys:
        named.setdefault(key.thumbprint, set()).add(key.kid)
    for mark, kids in named.items():
        if mark and len(kids) > 1:
            yield f"{', '.join(map(json.dumps, sorted(kids)))} are one and the same key"


def _kid(entry: Mapping[str, Any]) -> str:
    return _text(entry, "kid")[:LONGEST_KID]


def _text(entry: Mapping[str, Any], name: str) -> str:
    value = entry.get(name)
    return value if isinstance(value, str) else ""
