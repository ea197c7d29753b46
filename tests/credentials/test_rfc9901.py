"""RFC 9901's own examples, as far as they apply to this profile."""

import json
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from django_identity.credentials import KeySet, RejectionReason
from django_identity.credentials.payload import read_payload
from django_identity.exceptions import CredentialRejected
from tests.credentials.issuer import (
    check,
    digest,
    header,
    join,
    listing,
    payload,
    rejection,
    token,
    unb64,
)

R = RejectionReason
RFC = json.loads((Path(__file__).parent / "data" / "rfc9901.json").read_text("utf-8"))
KEY = ec.derive_private_key(int.from_bytes(unb64(RFC["key"]["d"]), "big"), ec.SECP256R1())
PUBLIC = {name: value for name, value in RFC["key"].items() if name != "d"} | {"kid": "rfc"}
LISTED = json.loads(unb64(RFC["token"].split(".")[1]))["_sd"]
KEYS = KeySet.from_jwks({"keys": [PUBLIC]})


def in_our_profile(disclosures: list[str], listed: list[str]) -> str:
    """These disclosures under the header and payload of this profile, by the RFC's own key."""
    body = payload(_sd=listed)
    return join(token(header(kid="rfc"), body, KEY), disclosures)


def test_the_example_is_of_another_profile():
    """§5.1: its type is not ours; under our header, what stops it is the nested placeholder."""
    assert rejection(join(RFC["token"], RFC["disclosures"]), keys=KEYS) is R.HEADER_TYP
    with pytest.raises(CredentialRejected) as rejected:
        read_payload(unb64(RFC["token"].split(".")[1]))
    assert rejected.value.reason is R.PAYLOAD_NESTED


@pytest.mark.parametrize("left_out", [None, *range(8)])
def test_presentations_of_the_example(left_out):
    """§5.1, §5.2: its disclosures have the digests that are listed; any may be withheld."""
    sent = [text for place, text in enumerate(RFC["disclosures"]) if place != left_out]
    said = {
        name: RFC["claims"][name] for place, name in enumerate(RFC["claims"]) if place != left_out
    }
    assert check(in_our_profile(sent, LISTED), keys=KEYS).claims == said


@pytest.mark.parametrize("text", RFC["array_elements"])
def test_array_elements_of_the_example(text):
    """§4.2.2: a disclosure of an array element is not of this profile, listed or not."""
    assert rejection(in_our_profile([text], [digest(text)]), keys=KEYS) is (
        R.DISCLOSURE_ARRAY_ELEMENT
    )
    assert rejection(in_our_profile([text], LISTED), keys=KEYS) is R.DISCLOSURE_UNLISTED


@pytest.mark.parametrize("text", RFC["spellings"])
def test_spellings(text):
    """§4.2.1: a disclosure may be spelled in many ways; it counts as it was sent."""
    assert check(listing(text)).claims == {"family_name": "Möbius"}
    assert check(in_our_profile([RFC["spellings"][0]], [RFC["digest"]]), keys=KEYS)
    if text != RFC["spellings"][0]:
        assert rejection(in_our_profile([text], [RFC["digest"]]), keys=KEYS) is (
            R.DISCLOSURE_UNLISTED
        )
