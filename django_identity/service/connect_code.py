"""Connect codes as people hand them in. Pure: nothing is sent from here.

A code is ``CNX-XXXX-XXXX`` with upper-case letters and digits. People paste it in lower case, with
spaces or typographic dashes, without hyphens, or with the whole sentence it came in.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from django_identity.exceptions import ConnectCodeMalformed

LONGEST_PASTE = 1000
MINUS = "\u2212"
# What stands next to a code is no part of it: ``CNX-ABCD-12345`` holds no code.
_BEFORE, _AFTER = r"(?<![A-Z0-9])", r"(?!-?[A-Z0-9])"
_WRITTEN_OUT = re.compile(_BEFORE + r"CNX ?- ?([A-Z0-9]{4}) ?- ?([A-Z0-9]{4})" + _AFTER)
_ALONE = re.compile(r"CNX([A-Z0-9]{4})([A-Z0-9]{4})")
_LOOSE = re.compile(_BEFORE + r"CNX[ -]*([A-Z0-9]{4})[ -]*([A-Z0-9]{4})" + _AFTER)


def code_in(pasted: str) -> str:
    """The one code in what a person handed in, in its plain form.

    Raises ``ConnectCodeMalformed`` if there is none, or more than one: a guess would spend a code.
    """
    if len(pasted) > LONGEST_PASTE:
        raise ConnectCodeMalformed("longer than any sentence around a code")
    text = _plain(pasted)
    found = {*_codes(_WRITTEN_OUT.finditer(text))} or {*_alone(text)} or _loose(text)
    if len(found) != 1:
        raise ConnectCodeMalformed(f"{len(found)} codes")
    return found.pop()


def _plain(pasted: str) -> str:
    """Upper case, one kind of dash and of space, nothing invisible."""
    characters = []
    for character in unicodedata.normalize("NFKC", pasted):
        category = unicodedata.category(character)
        if category == "Pd" or character in (MINUS, "_"):
            characters.append("-")
        elif category == "Zs" or character.isspace():
            characters.append(" ")
        elif category != "Cf":
            characters.append(character)
    return re.sub(" +", " ", "".join(characters).upper()).strip()


def _codes(matches: Iterator[re.Match[str]]) -> Iterator[str]:
    for match in matches:
        yield f"CNX-{match[1]}-{match[2]}"


def _alone(text: str) -> Iterator[str]:
    """A code and nothing else, however it is spaced."""
    match = _ALONE.fullmatch(re.sub("[ -]", "", text))
    return _codes(iter([match] if match else []))


def _loose(text: str) -> set[str]:
    """Codes without hyphens in a sentence; those with a digit win, as "CNX code from" is words."""
    found = {*_codes(_LOOSE.finditer(text))}
    return {code for code in found if any(map(str.isdigit, code))} or found
