"""What Django itself leaves in English on an Arabic page, read from its own catalogues.

The English catalogues list every text of a release; a release may come before its translations.
"""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import django
from django.utils import translation

CATALOGUES = ("conf", "contrib/admin")
_LINES = r'((?:".*"\n)+)'
ENTRY = re.compile(rf"^(?:msgctxt {_LINES})?msgid {_LINES}(?:msgid_plural {_LINES})?msgstr", re.M)
PLACE = re.compile(r"%\(\w+\)[a-z]|%[a-z]|\{\w*\}")


def without_djangos(text: str) -> str:
    """``text``; where it is one that Django left in English, only what was filled in."""
    for pattern in _left_in_english():
        if found := pattern.fullmatch(text):
            return " ".join(found.groups())
    return text


@cache
def _left_in_english() -> list[re.Pattern[str]]:
    """The wordiest first: one with few words may match what a wordier one says more of."""
    with translation.override("ar"):
        texts = {text.strip() for name in CATALOGUES for text in _untranslated(name)}
    words = {text: len(PLACE.sub("", text).strip()) for text in texts}
    wordy = sorted((text for text in texts if words[text]), key=words.__getitem__, reverse=True)
    split = [[re.escape(piece) for piece in PLACE.split(text)] for text in wordy]
    return [re.compile(rf"\s*{'(.*)'.join(pieces)}\s*", re.DOTALL) for pieces in split]


def _untranslated(name: str) -> list[str]:
    catalogue = Path(django.__file__).parent / name / "locale/en/LC_MESSAGES/django.po"
    left = []
    for quoted in ENTRY.findall(catalogue.read_text(encoding="utf-8")):
        context, one, many = ("".join(map(ast.literal_eval, q.splitlines())) for q in quoted)
        inside = f"{context}\x04" if context else ""  # as a catalogue keys it
        if many:
            said = translation.ngettext(inside + one, inside + many, 2)
        else:
            said = translation.gettext(inside + one)
        left += [text for text in (one, many) if text and said in {inside + one, inside + many}]
    return left
