"""The outer form: rows 1 to 6 of the checklist."""

from __future__ import annotations

from itertools import count

import pytest

from django_identity.credentials import RejectionReason
from tests.credentials.issuer import (
    CLAIMS,
    DISCLOSURES,
    SUBJECT,
    b64,
    check,
    credential,
    disclose,
    encode,
    header,
    join,
    listing,
    payload,
    raw_signature,
    rejection,
    token,
)

R = RejectionReason
VALID = credential()
TOKEN = token()


def test_a_valid_credential_is_accepted():
    """The very credential that every other test breaks in one place is accepted."""
    verified = check(VALID)
    assert verified.claims == CLAIMS
    assert (verified.subject, verified.environment, verified.kid) == (SUBJECT, "test", "key-1")


@pytest.mark.parametrize(
    "text",
    [None, VALID.encode(), bytearray(b"a"), 1, [VALID]],
    ids=lambda text: type(text).__name__,
)
def test_no_text_is_the_callers_mistake(text):
    """Row 1: what is not a str is a TypeError."""
    with pytest.raises(TypeError):
        check(text)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", R.FORMAT_TILDE),
        ("~", R.FORMAT_SEGMENTS),
        (".", R.FORMAT_TILDE),
        ("..~", R.FORMAT_SEGMENTS),
        ("\0", R.FORMAT_CHARSET),
        ("\ud800~", R.FORMAT_CHARSET),
        ("a" * 10_000_000, R.LIMITS),
        ("~" * 10_000_000, R.LIMITS),
        ("." * 100_000 + "~", R.FORMAT_SEGMENTS),
    ],
    ids=["empty", "tilde", "dot", "dots", "nul", "surrogate", "10M", "10M tildes", "many dots"],
)
def test_any_text_ends_in_a_rejection(text, reason):
    """Row 1: any str whatever ends in a result or in CredentialRejected."""
    assert rejection(text) is reason


@pytest.mark.parametrize(
    "text",
    [
        "a" * (128 * 1024) + "~",
        join(token(header(pad="x" * 4096)), DISCLOSURES),
        join(TOKEN, [disclose(f"c{number}", 1) for number in range(201)]),
    ],
    ids=["size", "header", "disclosures"],
)
def test_limits(text):
    """Row 2: over 128 Ki characters, 4 KiB of header or 200 disclosures is rejected unread."""
    assert rejection(text) is R.LIMITS


def test_limits_leave_room():
    """Row 2: 200 disclosures, and 32 KiB in one of them, pass."""
    many = [disclose(f"c{number}", number) for number in range(199)]
    verified = check(listing(*many, disclose("long", "x" * 32_768)))
    assert len(verified.claims) == 200


def test_limits_are_exact():
    """Row 2: the last character within the limit is read, the first beyond it is not."""
    assert rejection("a.".ljust(128 * 1024, "a")) is R.FORMAT_TILDE
    assert rejection("a.".ljust(128 * 1024 + 1, "a")) is R.LIMITS
    assert rejection("a" * 4096 + ".AA.AA~") is R.HEADER_JSON
    assert rejection("a" * 4097 + ".AA.AA~") is R.LIMITS


@pytest.mark.parametrize("place", [0, len(TOKEN) // 2, len(TOKEN) + 5, len(VALID) - 1, len(VALID)])
@pytest.mark.parametrize(
    "character",
    [
        *" \t\n\r\0=+/%\"'{,:;!*",
        "%7E",
        "\ufeff",  # byte order mark
        "\u00e9",
        "\u0410",  # looks like A
        "\uff10",  # looks like 0
        "\uff5e",  # looks like ~
        "\u2024",  # looks like .
        "\u200b",  # looks like nothing
        "\ud83d",  # half a character
    ],
    ids=ascii,
)
def test_charset(character, place):
    """Row 3: a character that base64url, "." and "~" do not have is rejected wherever it stands."""
    assert rejection(VALID[:place] + character + VALID[place:]) is R.FORMAT_CHARSET


def test_json_serialisation():
    """Row 3: the JSON serialisation of an SD-JWT is another format."""
    head, body, signature = TOKEN.split(".")
    flattened = f'{{"payload":"{body}","protected":"{head}","signature":"{signature}"}}'
    assert rejection(flattened) is R.FORMAT_CHARSET


KB_HEADER = {"alg": "ES256", "typ": "kb+jwt"}


@pytest.mark.parametrize(
    "text",
    [
        TOKEN,
        VALID[:-1],
        VALID + token(KB_HEADER, {"aud": "client-1", "nonce": "1", "sd_hash": "x"}),
        VALID + "a.b.c",
        VALID + "x",
        TOKEN + "~" + TOKEN,
    ],
    ids=["bare JWT", "last tilde lost", "KB-JWT", "forged KB-JWT", "text", "second token"],
)
def test_tilde(text):
    """Row 4: the text ends with "~"; a key-binding part is refused, never left out."""
    assert rejection(text) is R.FORMAT_TILDE


@pytest.mark.parametrize(
    "head",
    ["a.b", "a.b.c.d", "a.b.c.d.e", ".b.c", "a..c", "a.b.", "..", "abc", ""],
)
def test_segments(head):
    """Row 5: the signed token has exactly three segments, none empty."""
    assert rejection(head + "~") is R.FORMAT_SEGMENTS


@pytest.mark.parametrize(
    "rest",
    ["~", f"{DISCLOSURES[0]}~~", f"~{DISCLOSURES[0]}~", "a.b~", ".~", TOKEN + "~"],
)
def test_disclosure_form(rest):
    """Row 5: a disclosure is not empty and has no dot."""
    assert rejection(f"{TOKEN}~{rest}") is R.FORMAT_DISCLOSURE


def other_spellings(text: str) -> list[str]:
    """The texts with another last character that name the same octets."""
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    free = {0: 1, 2: 16, 3: 4}[len(text) % 4]
    group = alphabet.index(text[-1]) // free * free
    return [text[:-1] + alphabet[group + step] for step in range(1, free)]


def bent_spellings(text: str) -> list[str]:
    """Those, and a text that is one character longer than whole groups."""
    overlong = text + "A" * ((1 - len(text)) % 4)
    return [bent for bent in (*other_spellings(text), overlong) if bent != text]


@pytest.mark.parametrize("spelling", other_spellings(TOKEN.split(".")[2]), ids=count())
def test_encoding_of_the_signature(spelling):
    """Row 6: the 15 other spellings of the same signature are rejected."""
    head, body, _ = TOKEN.split(".")
    assert rejection(join(f"{head}.{body}.{spelling}", DISCLOSURES)) is R.ENCODING


@pytest.mark.parametrize("body", ['{"a":1}', '{"a":11}', '{"a":111}'])
def test_encoding_of_what_the_issuer_signed(body):
    """Row 6: not even the issuer can sign a spelling that is not canonical."""
    for bent in bent_spellings(encode(body)):
        signed = f"{encode(header())}.{bent}"
        assert rejection(f"{signed}.{b64(raw_signature(signed))}~") is R.ENCODING


@pytest.mark.parametrize("pad", ["", "x", "xx"])
def test_encoding_of_a_header_that_the_issuer_signed(pad):
    """Row 6: nor is a header in another spelling read, whoever signed it."""
    for bent in bent_spellings(encode(header(pad=pad))):
        signed = f"{bent}.{encode(payload())}"
        assert rejection(f"{signed}.{b64(raw_signature(signed))}~") is R.ENCODING


@pytest.mark.parametrize("salt", ["a", "ab", "abc"])
def test_encoding_of_a_listed_disclosure(salt):
    """Row 6: a disclosure that is not canonical is rejected even if its digest is listed."""
    for bent in bent_spellings(disclose("age_over_18", True, salt)):
        assert rejection(listing(bent)) is R.ENCODING
