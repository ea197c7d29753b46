"""What the issuer, or somebody in between, may send: rows of texts, and what becomes of each.

The numbers are those of the checklist: form, header, keys, signature, payload, disclosures.
"""

import hashlib
import hmac
import json
from collections.abc import Iterable
from typing import Any

import pytest
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from django_identity.credentials import RejectionReason
from tests.credentials.issuer import (
    ABSENT,
    DISCLOSURES,
    KEY,
    ORDER,
    OTHER_KEY,
    b64,
    credential,
    disclose,
    encode,
    header,
    join,
    jwk,
    listing,
    payload,
    raw_signature,
    token,
    written,
)
from tests.credentials.json_texts import NOT_STRICT

R = RejectionReason
VALID = credential()
TOKEN = token()


def refused(
    rule: str,
    reason: RejectionReason,
    texts: Iterable[str],
    **asked: Any,
) -> Any:
    """``texts`` that are all refused for ``reason``; ``asked``: what ``verify`` is asked with."""
    return pytest.param(reason, tuple(texts), asked, id=rule)


def headed(**changes: Any) -> str:
    """A credential whose header has these members, and a good signature."""
    return written(header(**changes))


def named(rule: str, reason: RejectionReason, name: str, values: Iterable[Any]) -> Any:
    """Values of a member of the header that are all refused."""
    return refused(rule, reason, [headed(**{name: value}) for value in values])


def other_spellings(text: str) -> list[str]:
    """The texts with another last character that name the same octets."""
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    free = {0: 1, 2: 16, 3: 4}[len(text) % 4]
    group = alphabet.index(text[-1]) // free * free
    spelled = [text[:-1] + alphabet[group + step] for step in range(free)]
    # And one that is a character longer than whole groups.
    return [
        each for each in (*spelled, text + "A" * ((1 - len(text)) % 4)) if each != text
    ]


def signed(head: str, body: str) -> str:
    return f"{head}.{body}.{b64(raw_signature(f'{head}.{body}'))}"


HEAD, BODY, SIGNATURE = TOKEN.split(".")
SIGNED = f"{HEAD}.{BODY}"


def with_signature(signature: bytes, text: str = SIGNED) -> str:
    return join(f"{text}.{b64(signature)}", DISCLOSURES)


# Behind those of ASCII: a byte order mark, an accent, what looks like A, 0, tilde, dot and nothing,
# and half a character.
ODD_CHARACTERS = (
    *" \t\n\r\0=+/%\"'{,:;!*\ufeff\u00e9\u0410\uff10\uff5e\u2024\u200b\ud83d",
    "%7E",
)
PLACES = (0, len(TOKEN) // 2, len(TOKEN) + 5, len(VALID) - 1, len(VALID))
KEY_BINDING = token(
    {"alg": "ES256", "typ": "kb+jwt"},
    {"aud": "client-1", "sd_hash": "x"},
)

FORM = [
    refused("1 empty", R.FORMAT_TILDE, ["", "."]),
    refused("1 no parts", R.FORMAT_SEGMENTS, ["~", "..~", "." * 100_000 + "~"]),
    refused("1 no characters of ours", R.FORMAT_CHARSET, ["\0", "\ud800~"]),
    refused("2 limits", R.LIMITS, [
        "a" * 10_000_000, "~" * 10_000_000, "a" * (128 * 1024) + "~",
        "a.".ljust(128 * 1024 + 1, "a"), "a" * 4097 + ".AA.AA~", headed(pad="x" * 4096),
        join(TOKEN, [disclose(f"c{number}", 1) for number in range(201)]),
    ]),
    refused("2 the last character within the limit", R.FORMAT_TILDE, [
        "a.".ljust(128 * 1024, "a"),
    ]),
    refused("2 the last one of the header", R.HEADER_JSON, ["a" * 4096 + ".AA.AA~"]),
    refused("3 a character that base64url, dot and tilde do not have", R.FORMAT_CHARSET, [
        VALID[:place] + odd + VALID[place:] for place in PLACES for odd in ODD_CHARACTERS
    ]),
    refused("3 the JSON serialisation is another format", R.FORMAT_CHARSET, [
        f'{{"payload":"{BODY}","protected":"{HEAD}","signature":"{SIGNATURE}"}}',
    ]),
    refused("4 the text ends with a tilde; a key binding is not left out", R.FORMAT_TILDE, [
        TOKEN, VALID[:-1], VALID + KEY_BINDING, VALID + "a.b.c", VALID + "x", TOKEN + "~" + TOKEN,
    ]),
    refused("5 three segments, none empty", R.FORMAT_SEGMENTS, [
        f"{head}~" for head in ("a.b", "a.b.c.d", "a.b.c.d.e", ".b.c", "a..c", "a.b.", "..", "abc")
    ]),
    refused("5 a disclosure is not empty and has no dot", R.FORMAT_DISCLOSURE, [
        f"{TOKEN}~{rest}"
        for rest in ("~", f"{DISCLOSURES[0]}~~", f"~{DISCLOSURES[0]}~", "a.b~", ".~", TOKEN + "~")
    ]),
    refused("6 the 15 other spellings of the signature", R.ENCODING, [
        join(f"{HEAD}.{BODY}.{spelling}", DISCLOSURES) for spelling in other_spellings(SIGNATURE)
    ]),
    refused("6 not even the issuer can sign another spelling", R.ENCODING, [
        *(f"{signed(HEAD, bent)}~" for text in ('{"a":1}', '{"a":11}', '{"a":111}')
          for bent in other_spellings(encode(text))),
        *(f"{signed(bent, BODY)}~" for pad in ("", "x", "xx")
          for bent in other_spellings(encode(header(pad=pad)))),
        *(listing(bent) for salt in ("a", "ab", "abc")
          for bent in other_spellings(disclose("age_over_18", True, salt))),
    ]),
]  # fmt: skip

PUBLIC_KEY = KEY.public_key()
SPKI = serialization.PublicFormat.SubjectPublicKeyInfo
POINT = serialization.PublicFormat.UncompressedPoint
PUBLIC_SPELLINGS = [
    PUBLIC_KEY.public_bytes(serialization.Encoding.PEM, SPKI),
    PUBLIC_KEY.public_bytes(serialization.Encoding.DER, SPKI),
    PUBLIC_KEY.public_bytes(serialization.Encoding.X962, POINT), json.dumps(jwk()).encode(), b"",
]  # fmt: skip
MAC_INPUT = f"{encode(header(alg='HS256'))}.{BODY}"

HEADER = [
    refused("7-10 one object of strict JSON in UTF-8", R.HEADER_JSON, [
        written(text) for text in NOT_STRICT.values() if len(text) <= 3_000
    ]),
    named("11 ES256 and nothing else, with a good signature too", R.HEADER_ALG, "alg", [
        "none", "None", "NONE", "nOnE", "", "HS256", "HS512", "ES384", "ES512", "ES256K",
        "RS256", "PS256", "EdDSA", "Ed25519", "ESP256", "es256", "ES256 ", ["ES256"],
        {"ES256": 1}, None, True, 256, ABSENT,
    ]),
    refused("11 a MAC under the public key is no signature", R.HEADER_ALG, [
        with_signature(hmac.digest(secret, MAC_INPUT.encode(), hashlib.sha256), MAC_INPUT)
        for secret in PUBLIC_SPELLINGS
    ]),
    named("12 the type is exactly dc+sd-jwt", R.HEADER_TYP, "typ", [
        "JWT", "vc+sd-jwt", "example+sd-jwt", "kb+jwt", "application/dc+sd-jwt", "DC+SD-JWT",
        "dc+sd-jwt ", "", ["dc+sd-jwt"], None, ABSENT,
    ]),
    named("13 critical extensions in any form", R.HEADER_CRIT, "crit",
          [[], None, ["b64"], ["exp"], "b64", {}, False]),
    refused("14 a header that brings or points to a key", R.HEADER_KEY_SOURCE, [
        headed(**source) for source in (
            {"jwk": jwk()}, {"jwk": None}, {"jku": "https://evil.example/jwks.json"},
            {"x5c": ["MII"]}, {"x5u": "https://evil.example/"},
        )
    ]),
    named("16 the key is named by a string, even if there is only one", R.HEADER_KID, "kid",
          [ABSENT, None, 1, True, ["key-1"], {"key-1": 1}]),
    named("16 no other key than the one of exactly that name", R.KEY, "kid",
          ["", "KEY-1", "key-1 ", " key-1", "key-", "key-2", "\uff4bey-1"]),
]  # fmt: skip

GOOD = raw_signature(SIGNED)
DER = KEY.sign(SIGNED.encode(), ec.ECDSA(hashes.SHA256()))
GOOD_R, GOOD_S = int.from_bytes(GOOD[:32], "big"), int.from_bytes(GOOD[32:], "big")


def pair(r: int, s: int) -> bytes:
    return r.to_bytes(32, "big") + s.to_bytes(32, "big")


BAD_SIGNATURES = [
    DER,
    # 63 octets and their like
    GOOD[:-1], GOOD[1:], GOOD + b"\0", b"\0" + GOOD, GOOD[:32] + b"\0" + GOOD[32:] + b"\0",
    b"\0" + GOOD[:32] + b"\0" + GOOD[32:], GOOD[:32].rjust(48, b"\0") + GOOD[32:].rjust(48, b"\0"),
    b"\0", GOOD.hex().encode(), GOOD + GOOD,
    # numbers outside of the group's order
    bytes(64), pair(0, GOOD_S), pair(GOOD_R, 0), b"\xff" * 64, pair(ORDER, GOOD_S),
    pair(GOOD_R, ORDER), pair(ORDER, ORDER),
    # other numbers
    pair(ORDER - GOOD_R, GOOD_S), pair(GOOD_R + 1, GOOD_S), pair(1, GOOD_S), pair(1, 1),
    GOOD[32:] + GOOD[:32], GOOD[:32][::-1] + GOOD[32:][::-1],
    # of another key, of another text
    raw_signature(SIGNED, OTHER_KEY), raw_signature(SIGNED + "A"),
]  # fmt: skip
REORDERED_HEAD = encode(dict(reversed(header().items())))
REORDERED_BODY = encode(dict(reversed(payload().items())))

SIGNATURES = [
    refused("21-22 64 octets of r and s, of this text by this key", R.SIGNATURE, [
        *map(with_signature, BAD_SIGNATURES),
    ]),
    refused("23 the same JSON in another order is another text", R.SIGNATURE, [
        with_signature(GOOD, f"{REORDERED_HEAD}.{BODY}"),
        with_signature(GOOD, f"{HEAD}.{REORDERED_BODY}"),
        with_signature(GOOD, f"{encode(header(x=1))}.{BODY}"),
    ]),
    refused("24 with a bad signature nothing else is looked at", R.SIGNATURE, [
        join(f"{HEAD}.{encode('not JSON')}.{b64(GOOD)}", ["AAAA"]),
        join(f"{SIGNED}.{b64(bytes(64))}", ["AAAA", "AAAA"]),
        join(token(body=payload(exp=1, aud=[]), key=OTHER_KEY), []),
    ]),
]  # fmt: skip
