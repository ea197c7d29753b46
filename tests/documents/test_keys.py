"""Encrypted documents: what was meant for us opens, and nothing else."""

import json
import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st
from joserfc import jwe
from joserfc.jwk import ECKey, OctKey, RSAKey
from jwcrypto.jwe import JWE
from jwcrypto.jwk import JWK

from django_identity.documents.keys import LARGEST, MAX_CHARACTERS, open_document
from django_identity.exceptions import DocumentUnreadable
from tests.credentials.issuer import encode, unb64
from tests.example_counts import examples

# The library warns of what we must refuse.
pytestmark = pytest.mark.filterwarnings("ignore::joserfc.errors.SecurityWarning")
CONTENT = b'{"national_id": "12345678901"}'
JSON = "application/json"


def made(kind, size, kid, alg):
    return kind.generate_key(size, {"kid": kid, "alg": alg, "use": "enc"}, private=True)


RSA = made(RSAKey, 2048, "rsa", "RSA-OAEP-256")
EC = made(ECKey, "P-256", "ec", "ECDH-ES+A256KW")
DIRECT = made(ECKey, "P-256", "direct", "ECDH-ES")
OLD = made(ECKey, "P-256", "old", "ECDH-ES+A256KW")
SHARED = OctKey.generate_key(256, {"kid": "shared"})
LEGACY = made(RSAKey, 2048, "legacy", "RSA-OAEP")
WRAPPED = made(ECKey, "P-384", "wrapped", "ECDH-ES+A128KW")
WIDE = made(ECKey, "P-521", "wide", "ECDH-ES+A256KW")
EVERY = (RSA, EC, DIRECT, LEGACY, WRAPPED, WIDE)
ENCS = ("A128GCM", "A192GCM", "A256GCM", "A128CBC-HS256", "A256CBC-HS512")
ALL = (
    "RSA-OAEP",
    "RSA-OAEP-256",
    "ECDH-ES",
    "ECDH-ES+A128KW",
    "ECDH-ES+A256KW",
    "dir",
    "A256KW",
    "RSA1_5",
    *ENCS,
    "A192CBC-HS384",
    "DEF",
)


def sealed(key, *, content=CONTENT, **header):
    registry = jwe.JWERegistry(algorithms=ALL, strict_check_header=False)
    registry.max_ciphertext_length = 40 * 1024 * 1024
    told = {"alg": key.as_dict().get("alg"), "enc": "A256GCM", "kid": key.kid, **header}
    told = {name: value for name, value in told.items() if value is not None}
    return jwe.encrypt_compact(told, content, key, registry=registry)


def private(*keys):
    return [key.as_dict(private=True) for key in keys]


def opened(document, *keys, content_type=JSON):
    return open_document(document, keys=private(*keys), content_type=content_type)


def refused(document, *keys, content_type=JSON):
    with pytest.raises(DocumentUnreadable) as raised:
        opened(document, *keys, content_type=content_type)
    return raised.value.detail


@pytest.mark.parametrize("key", EVERY, ids=lambda key: key.kid)
@pytest.mark.parametrize("enc", ENCS)
def test_what_is_meant_for_us_opens(key, enc):
    """Whichever of our keys it names, wherever that stands; old ones too, while they rotate."""
    assert opened(sealed(key, enc=enc), OLD, *EVERY) == CONTENT
    assert opened(sealed(OLD, enc=enc), key, OLD) == CONTENT


def test_the_kid_chooses_the_key():
    """No other key is tried. Without a ``kid``, four of the algorithm: a fifth is too much work."""
    for kid in ("unknown", "old"):
        assert refused(sealed(EC, kid=kid), EC, OLD) == "no key opens it"
    document = sealed(EC, kid=None)
    others = [made(ECKey, "P-256", f"old-{n}", "ECDH-ES+A256KW") for n in range(4)]
    assert opened(document, RSA, DIRECT, *others[:3], EC) == CONTENT
    assert refused(document, *others, EC) == "no key opens it"


@pytest.mark.parametrize(
    "header",
    [
        {"typ": "JOSE"},
        {"typ": "application/jose"},
        {"typ": "JWE"},
        {"cty": "json"},
        {"cty": "Application/JSON; charset=utf-8"},
        {"apu": "QWxpY2U", "apv": "Qm9i"},
    ],
)
def test_harmless_members_may_be_there(header):
    """Types in any spelling (RFC 2045 §5.1), and the parties of a key agreement."""
    for said in (JSON, "Application/JSON", f"{JSON}; charset=utf-8", f"{JSON};v=1 "):
        assert opened(sealed(EC, **header), EC, content_type=said) == CONTENT


def test_documents_open_up_to_ten_megabytes():
    """An image of a passport has a few megabytes; what is larger than 10 is none."""
    largest = b"\x89PNG\r\n\x1a\n".ljust(LARGEST, b"\0")
    assert opened(sealed(EC, content=largest), EC, content_type="image/png") == largest
    larger = sealed(EC, content=largest + b"\0")
    assert refused(larger, EC, content_type="image/png")


@pytest.mark.parametrize(
    ("key", "header"),
    [
        *[(SHARED, {"alg": alg}) for alg in ("dir", "A256KW")],
        *[(RSA, {"alg": alg}) for alg in ("RSA-OAEP", "RSA1_5")],
        *[(EC, {"alg": alg}) for alg in ("ECDH-ES", "ECDH-ES+A128KW")],
        (EC, {"enc": "A192CBC-HS384"}),
        (EC, {"zip": "DEF"}),
        (EC, {"jku": "https://example.org"}),
        (EC, {"typ": "JOSE+JSON"}),
        *[(EC, {"cty": cty}) for cty in ("image/png", "JWT")],
    ],
)
def test_other_algorithms_are_refused(key, header):
    assert refused(sealed(key, **header), RSA, EC) == "no key opens it"


GOOD = sealed(EC)
HEAD, WRAPPED_KEY, IV, CIPHERTEXT, TAG = GOOD.split(".")
UNREADABLE = {
    "nothing": "",
    "a dot": ".",
    "dots": "....",
    "letters": "a.b.c.d.e",
    "not ASCII": "ünïcödé",
    "a lone surrogate": "\ud800",
    "NUL": "\0",
    "cut off": GOOD[:-8],
    "longer": GOOD + "A",
    "six parts": f"{GOOD}.",
    "changed": GOOD.replace(CIPHERTEXT, CIPHERTEXT[::-1]),
    "another header": GOOD.replace(HEAD, "e30"),
    "too long": "A" * (MAX_CHARACTERS + 1),
    "a short tag": GOOD.replace(TAG, "AAAA"),
    "three parts": f"{HEAD}.{WRAPPED_KEY}.{IV}",
    "a short IV": GOOD.replace(IV, "AAAA"),
    "no encrypted key": GOOD.replace(WRAPPED_KEY, ""),
    "an encrypted key too many": sealed(DIRECT).replace("..", f".{WRAPPED_KEY}."),
    "JSON": json.dumps({"ciphertext": GOOD}),
    "the plain content": CONTENT.decode(),
}


@pytest.mark.parametrize("document", UNREADABLE.values(), ids=UNREADABLE)
def test_anything_else_is_unreadable(document):
    with pytest.raises(DocumentUnreadable):
        opened(document, EC, DIRECT)


ANYTHING = st.none() | st.booleans() | st.integers() | st.text(max_size=9)
MEMBERS = st.sampled_from(["alg", "enc", "kid", "epk", "typ", "zip"])


@examples(few=15, many=1000)
@given(st.dictionaries(MEMBERS, ANYTHING | st.lists(st.none())))
def test_no_changed_header_opens(members):
    """Members of any type, in a header that is otherwise ours: one error, whatever it holds."""
    changed = encode({**json.loads(unb64(HEAD)), **members})
    if changed != HEAD:
        assert refused(GOOD.replace(HEAD, changed), EC) == "no key opens it"


@pytest.mark.parametrize(
    ("content", "said", "opens"),
    [
        (b"%PDF-1.7", "application/pdf", True),
        (b"\xff\xd8\xff\xe0", "image/jpeg", True),
        (b"\x89PNG\r\n\x1a\n", "image/png", True),
        (b"{}", JSON, True),
        (b"%PDF-1.7 ...", "image/png", False),
        (b"\x89PNG\r\n\x1a\n", "application/pdf", False),
        (b"<svg/>", "image/svg+xml", False),
        (b"<html>", "application/pdf", False),
        (b"[1]", JSON, False),
        (b'{"a": 1, "a": 2}', JSON, False),
        (b"", JSON, False),
        (b"\xff\xd8\xff", "image/jpg", False),
    ],
)
def test_content_is_of_its_type(content, said, *, opens):
    """What it says to be is what it must be, and nothing that a browser would run."""
    document = sealed(EC, content=content)
    if opens:
        assert opened(document, EC, content_type=said) == content
    else:
        why = refused(document, EC, content_type=said)
        assert why == "not of its type and size"


@pytest.mark.parametrize(
    "keys",
    [
        [],
        [{"kid": "ec", "alg": "ECDH-ES+A256KW"}],
        [{"kid": "ec", "alg": "dir"}],
        private(OLD),
        [{**private(EC)[0], "use": "sig"}],
        [EC.as_dict(private=False)],
    ],
    ids=[
        "none",
        "without a point",
        "another algorithm",
        "another's",
        "for signatures",
        "public",
    ],
)
def test_without_its_key_nothing_opens(keys):
    with pytest.raises(DocumentUnreadable):
        open_document(GOOD, keys=keys, content_type=JSON)


def test_a_weak_key_opens_nothing():
    """1024 bits of RSA, and secp256k1, which the library knows and JWE does not (RFC 7518 §4.6)."""
    with warnings.catch_warnings(action="ignore"):
        short = made(RSAKey, 1024, "short", "RSA-OAEP-256")
    # joserfc would not encrypt to such a key.
    document = JWE(
        CONTENT,
        protected=json.dumps({"alg": "RSA-OAEP-256", "enc": "A256GCM"}),
    )
    document.add_recipient(JWK(**short.as_dict(private=False)))
    assert refused(document.serialize(compact=True), short) == "no key opens it"
    other = made(ECKey, "secp256k1", "other", "ECDH-ES+A256KW")
    assert refused(sealed(other), other) == "no key opens it"
