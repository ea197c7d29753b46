"""Coverage-guided fuzzing of ``verify`` and of ``KeySet`` (atheris, libFuzzer).

::

    pip install atheris
    python -m tests.fuzz.fuzz_credentials verify --seconds 60
    python -m tests.fuzz.fuzz_credentials signed --seconds 60
    python -m tests.fuzz.fuzz_credentials keys --seconds 60

``verify`` mutates the text of valid credentials. ``signed`` mutates header, payload and disclosures
and signs them properly, so that what stands behind the signature is reached too. ``keys`` mutates
key sets, as text and parsed.

CI runs each for 60 seconds on the oldest Python (atheris has no wheel for every version, so pytest
does not collect this file). Anything but a result or the documented error ends the run with exit
code 77 and a file ``crash-…``; ``… fuzz_credentials MODE FILE`` repeats it.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["django_identity.credentials"]):
    from django_identity.credentials import KeySet, RejectionReason, VerifiedCredential
    from django_identity.exceptions import CredentialRejected, MalformedAnswer

from tests.credentials.issuer import (
    CLAIMS,
    DISCLOSURES,
    OTHER_KEY,
    b64,
    check,
    credential,
    digest,
    disclose,
    header,
    join,
    jwk,
    listing,
    payload,
    raw_signature,
    unb64,
)

SEPARATOR = b"\n--\n"


def outcome(text: str) -> VerifiedCredential | RejectionReason:
    try:
        return check(text)
    except CredentialRejected as rejected:
        return rejected.reason


def fuzz_verify(octets: bytes) -> None:
    """Nothing but subsets of what was issued is ever accepted."""
    result = outcome(octets.decode("utf-8", "surrogateescape"))
    if isinstance(result, VerifiedCredential):
        assert result.claims.items() <= CLAIMS.items()


def fuzz_signed(octets: bytes) -> None:
    """Whatever is signed, only the claims that were disclosed come out."""
    head, _, rest = octets.partition(SEPARATOR)
    body, *contents = rest.split(SEPARATOR)
    body = body.replace(b'"LISTED"', listing_of(contents))
    sent = [b64(content) for content in contents]
    signed = f"{b64(head)}.{b64(body)}"
    result = outcome(join(f"{signed}.{b64(raw_signature(signed))}", sent))
    assert result is not RejectionReason.SIGNATURE
    if isinstance(result, VerifiedCredential):
        claims = result.claims_as_json()
        assert len(claims) == len(sent)
        assert json.loads(json.dumps(claims)) == claims


def listing_of(contents: list[bytes]) -> bytes:
    digests = dict.fromkeys(digest(b64(content)) for content in contents)
    return json.dumps(list(digests)).encode()


def fuzz_keys(octets: bytes) -> None:
    """A key set or a malformed answer; and what is used has a name of its own."""
    for read, content in ((KeySet.from_text, octets), (KeySet.from_jwks, parsed(octets))):
        try:
            keys = read(content)
        except MalformedAnswer:
            continue
        assert len(keys) == len(set(keys.kids)) <= 32


def parsed(octets: bytes) -> object:
    """As any reader of JSON would hand it on, however loosely."""
    try:
        return json.loads(octets)
    except (ValueError, RecursionError):
        return None


def signed_seed(*disclosures: str) -> bytes:
    body = json.dumps(payload(_sd="LISTED")).encode()
    return SEPARATOR.join([json.dumps(header()).encode(), body, *map(unb64, disclosures)])


MODES = {
    "verify": (
        fuzz_verify,
        [
            credential().encode(),
            credential(disclosures=[]).encode(),
            listing(*DISCLOSURES).encode(),
        ],
    ),
    "signed": (
        fuzz_signed,
        [
            signed_seed(),
            signed_seed(*DISCLOSURES),
            signed_seed(disclose("a", [{"b": [1.5, "é", "\ud83d\ude00"]}]), disclose("nbf", 1)),
        ],
    ),
    "keys": (
        fuzz_keys,
        [
            json.dumps({"keys": [jwk(), jwk("key-2", OTHER_KEY, use="sig", alg="ES256")]}).encode(),
            json.dumps(
                {"keys": [jwk(use="enc"), jwk(key_ops=["verify"]), {"kty": "RSA"}]}
            ).encode(),
        ],
    ),
}
WORDS = [
    "_sd", "_sd_alg", "...", "sha-256", "ES256", "none", "dc+sd-jwt", "crit", "kid", "key-1", "jwk",
    "iss", "aud", "sub", "exp", "nbf", "iat", "environment", "test", "NaN", "1e999", "\\u005fsd",
    "\\ud800", "LISTED", "P-256", "key_ops", "verify", "true", "null",
]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.fuzz_credentials")
    parser.add_argument("mode", choices=MODES)
    parser.add_argument("file", nargs="?", help="repeat what this file did")
    parser.add_argument("--seconds", type=int, default=60)
    chosen = parser.parse_args()
    target, seeds = MODES[chosen.mode]
    if chosen.file:
        target(Path(chosen.file).read_bytes())
        return
    with tempfile.TemporaryDirectory() as folder:
        corpus, words = Path(folder, "corpus"), Path(folder, "words")
        corpus.mkdir()
        for number, seed in enumerate(seeds):
            Path(corpus, f"seed-{number}").write_bytes(seed)
        words.write_text("".join(f"{json.dumps(word)}\n" for word in WORDS), "utf-8")
        limits = [f"-max_total_time={chosen.seconds}", "-max_len=8192", "-timeout=5"]
        atheris.Setup([sys.argv[0], str(corpus), f"-dict={words}", *limits], target)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
