"""Find a Connect code in pasted text. Pure functions: nothing is sent.

A code is ``CNX-XXXX-XXXX`` with upper-case letters and digits. People paste it in lower case, with
spaces or typographic dashes, without hyphens, or with the sentence around it.
"""

import re
import unicodedata

from django_identity.exceptions import ConnectCodeMalformed

LONGEST_PASTE = 1000
MINUS = "\u2212"
# A code must stand alone: ``CNX-ABCD-12345`` contains no code.
_BEFORE, _AFTER = r"(?<![A-Z0-9])", r"(?!-?[A-Z0-9])"
_WRITTEN_OUT = re.compile(_BEFORE + r"CNX ?- ?([A-Z0-9]{4}) ?- ?([A-Z0-9]{4})" + _AFTER)
_ALONE = re.compile(r"\ACNX([A-Z0-9]{4})([A-Z0-9]{4})\Z")
_LOOSE = re.compile(_BEFORE + r"CNX[ -]*([A-Z0-9]{4})[ -]*([A-Z0-9]{4})" + _AFTER)


def code_in(pasted: str) -> str:
    """The code in ``pasted``, in its canonical form.

    Raises ``ConnectCodeMalformed`` if the text contains no code, or two different codes.
    """
    if len(pasted) > LONGEST_PASTE:
        raise ConnectCodeMalformed("longer than any sentence around a code")
    text = _plain(pasted)
    # A text that contains nothing else may have any spacing.
    alone = re.sub("[ -]", "", text)
    found = _codes(_WRITTEN_OUT, text) or _codes(_ALONE, alone)
    if not found:
        # In a sentence without hyphens a code with a digit wins: "CNX code from" is text.
        loose = _codes(_LOOSE, text)
        found = {code for code in loose if any(map(str.isdigit, code))} or loose
    if len(found) != 1:
        raise ConnectCodeMalformed(f"{len(found)} codes")
    return found.pop()


def _plain(pasted: str) -> str:
    """Normalise: upper case, one kind of dash and of space, no invisible characters."""
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


def _codes(pattern: re.Pattern[str], text: str) -> set[str]:
    return {f"CNX-{first}-{second}" for first, second in pattern.findall(text)}
