"""Base64url without padding (RFC 7515 §2), only in its canonical form.

The last character has bits that belong to no octet. If these bits were ignored, up to 15 other
texts would decode to the same octets (RFC 4648 §3.5), and a changed credential would still verify.
"""

from binascii import a2b_base64

ALPHABET = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
_TO_STANDARD = bytes.maketrans(b"-_", b"+/")

LAST_OCTETS = tuple(map(frozenset, (ALPHABET, b"", ALPHABET[::16], ALPHABET[::4])))
"""By length modulo 4: what the last character of a canonical text may be.

One character more than whole groups spells no octet. Two more end in 4 zero bits, three in 2.
"""


def is_valid(text: bytes) -> bool:
    """Whether ``text``, which is not empty, can be decoded: of the alphabet, and canonical."""
    if text.translate(None, ALPHABET):
        return False
    return text[-1] in LAST_OCTETS[len(text) & 3]


def decode(text: bytes) -> bytes:
    """Decode ``text``. The caller has checked that it is valid."""
    return a2b_base64(text.translate(_TO_STANDARD) + b"==")
