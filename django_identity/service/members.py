"""Read the members of an answer: texts, subjects, times and addresses. Each is checked once."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import TypeGuard

from django_identity.exceptions import MalformedAnswer, SubjectMismatch
from django_identity.secrets import Secret
from django_identity.service.moments import NotAMoment, parse_moment
from django_identity.strict_json import JSONObject

LONGEST_TEXT = 1000
LONGEST_SUBJECT = 255
LONGEST_NAME = 128
LONGEST_CODE = 64
LONGEST_URL = 2000
SUBJECT_MEMBERS = ("user_id", "sub")
# Scheme, host and port without a user name, then the characters of RFC 3986: all visible ASCII.
URL = re.compile(
    r"(https?)://(?:[a-z0-9._-]+|\[[0-9a-f:.]+\])(?::[0-9]{1,5})?(?:[/?#][!#-&(-;=?-\[\]_a-z~]*)?",
    re.ASCII | re.IGNORECASE,
)
# RFC 6749 appendix A.12, but without spaces, because a token goes into a header.
TOKEN = re.compile(r"[\x21-\x7e]{1,16384}")
# Control characters and those that turn the direction of text: a text could hide or rewrite others.
CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")
DIRECTION = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u206f]")
REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


def is_subject(value: object) -> TypeGuard[str]:
    """Whether ``value`` is a subject: opaque text of 1 to 255 characters.

    It must be storable and usable as a path segment, so ``.`` and ``..`` are refused; and so are
    spaces alone, which some collations take for an empty text.
    """
    if not isinstance(value, str) or value in (".", ".."):
        return False
    if not value.strip() or len(value) > LONGEST_SUBJECT:
        return False
    return value.isprintable()


def without_controls(text: str) -> str:
    """``text`` with U+FFFD for each control and direction character.

    They are replaced. Removing them could give another text, such as a known code.
    """
    return DIRECTION.sub(REPLACEMENT, CONTROL.sub(REPLACEMENT, text))


def safe_url(address: object, *, environment: str) -> str:
    """``address`` if a page may show it, else empty. It is https; in test plain http, too."""
    if not isinstance(address, str) or len(address) > LONGEST_URL:
        return ""
    url = URL.fullmatch(address)
    if url is None:
        return ""
    is_plain = url[1].lower() == "http"
    if is_plain and environment != "test":
        return ""
    return address


@dataclass(frozen=True, slots=True, repr=False)
class Members:
    """Reads the members of an answer of ``endpoint``. Each method raises ``MalformedAnswer``."""

    body: JSONObject
    endpoint: str

    def wrong(self, detail: str) -> MalformedAnswer:
        return MalformedAnswer(detail, endpoint=self.endpoint)

    def require(self, condition: object, detail: str) -> None:
        if not condition:
            raise self.wrong(detail)

    def text(self, name: str, *, longest: int = LONGEST_TEXT) -> str:
        """A text, or an empty one if the member is absent or null.

        It can be shown: see ``without_controls``.
        """
        return without_controls(self.exact(name, longest=longest))

    def exact(self, name: str, *, longest: int = LONGEST_TEXT) -> str:
        """As ``text``, with every character that was sent."""
        value = self.body.get(name)
        if value is None:
            return ""
        # PostgreSQL cannot store NUL. The JSON reader has refused lone surrogates already.
        if not isinstance(value, str) or len(value) > longest or "\0" in value:
            raise self.wrong(f"{name} is not a usable text")
        return value

    def required(self, name: str, *, longest: int = LONGEST_TEXT) -> str:
        """A text for a terminal or a page: filled and printable."""
        text = self.exact(name, longest=longest)
        self.require(text.strip() and text.isprintable(), f"no usable {name}")
        return text

    def name(self, name: str) -> str:
        """A person's name on one line, freed of control and direction characters."""
        text = CONTROL.sub(" ", self.exact(name))
        text = DIRECTION.sub("", text)
        return " ".join(text.split())

    def token(self, name: str) -> Secret:
        value = self.body.get(name)
        if not isinstance(value, str) or not TOKEN.fullmatch(value):
            raise self.wrong(f"no usable {name}")
        return Secret(value)

    def moment(self, name: str) -> datetime | None:
        """An ISO 8601 time-stamp. UTC is the default zone, as in the spec."""
        text = self.text(name, longest=LONGEST_CODE)
        if not text:
            return None
        try:
            return parse_moment(text, takes_days=True)
        except NotAMoment:
            raise self.wrong(f"{name} is not a time") from None

    def subject(self, name: str) -> str:
        value = self.body.get(name)
        if not is_subject(value):
            raise self.wrong("a subject that is not a usable text")
        return value

    def named_subject(self, names: Collection[str] = SUBJECT_MEMBERS) -> str | None:
        """The subject that the answer names, if any. Raises ``SubjectMismatch`` if it names two."""
        named = {
            self.subject(name) for name in names if self.body.get(name) is not None
        }
        if len(named) > 1:
            raise SubjectMismatch("names two subjects", endpoint=self.endpoint)
        return next(iter(named), None)

    def listed(self, name: str, *, most: int) -> list[Members]:
        """A list of objects."""
        listed = self.body.get(name)
        if not isinstance(listed, list) or len(listed) > most:
            raise self.wrong(f"{name} is not a list of usable length")
        members: list[Members] = []
        for entry in listed:
            self.require(isinstance(entry, dict), f"{name} has no objects")
            members.append(Members(entry, self.endpoint))
        return members
