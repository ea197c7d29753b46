"""Read the members of an answer: texts, subjects, times and addresses. Each is checked once."""

import re
from collections.abc import Collection
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

from django_identity.conf.rules import may_be_plain
from django_identity.exceptions import MalformedAnswer, SubjectMismatch
from django_identity.service.moments import NotAMoment, parse_moment

LONGEST_TEXT = 1000
LONGEST_SUBJECT = 255
LONGEST_CODE = 64
LONGEST_URL = 2000
SUBJECTS = ("user_id", "sub")
# RFC 3986: visible ASCII. The characters below are refused too.
URL = re.compile(r"[\x21-\x7e]+")
NEVER_IN_URLS = frozenset("\"'<>\\^`{|}")

Members = dict[str, Any]


def subject_of(value: object, endpoint: str) -> str:
    """Return ``value`` if it is a subject: opaque text of 1 to 255 characters.

    It must be storable and usable as a path segment, so ``.`` and ``..`` are refused.
    """
    if not isinstance(value, str) or not 0 < len(value) <= LONGEST_SUBJECT:
        raise MalformedAnswer("a subject that is not a usable text", endpoint=endpoint)
    if value in (".", "..") or not value.isprintable():
        raise MalformedAnswer("a subject that cannot be quoted", endpoint=endpoint)
    return value


def named_subject(body: Members, endpoint: str, *, names: Collection[str] = SUBJECTS) -> str | None:
    """The subject that the answer names, or None. Raises ``SubjectMismatch`` if it names two."""
    given = [body[name] for name in names if body.get(name) is not None]
    named = {subject_of(value, endpoint) for value in given}
    if len(named) > 1:
        raise SubjectMismatch("names two subjects", endpoint=endpoint)
    return named.pop() if named else None


def is_subject(value: object) -> bool:
    """Whether ``value`` is a valid subject by the rules of ``subject_of``."""
    try:
        subject_of(value, "")
    except MalformedAnswer:
        return False
    return True


def text_of(body: Members, name: str, endpoint: str, *, longest: int = LONGEST_TEXT) -> str:
    """A text member, or an empty text if it is absent or null."""
    value = body.get(name)
    if value is None:
        return ""
    # PostgreSQL cannot store NUL. The JSON reader has refused lone surrogates already.
    if not isinstance(value, str) or len(value) > longest or "\0" in value:
        raise MalformedAnswer(f"{name} is not a usable text", endpoint=endpoint)
    return value


def safe_url(given: object, *, environment: str, plain_hosts: Collection[str] = ()) -> str:
    """``given`` if a page may show it, else empty: https; this machine, ``plain_hosts`` in test."""
    if not isinstance(given, str) or not URL.fullmatch(given) or NEVER_IN_URLS & {*given}:
        return ""
    try:
        parts = urlsplit(given)
    except ValueError:
        return ""
    is_plain = parts.scheme == "http" and may_be_plain(parts.hostname, environment, plain_hosts)
    is_safe = parts.scheme == "https" or is_plain
    is_whole = len(given) <= LONGEST_URL and parts.hostname and parts.username is None
    return given if is_safe and is_whole else ""


def required_text(body: Members, name: str, endpoint: str, *, longest: int = LONGEST_TEXT) -> str:
    text = text_of(body, name, endpoint, longest=longest)
    if not text:
        raise MalformedAnswer(f"no {name}", endpoint=endpoint)
    return text


def required_line(body: Members, name: str, endpoint: str, *, longest: int = LONGEST_TEXT) -> str:
    """A text that a terminal or a page can show: not empty, and printable."""
    text = required_text(body, name, endpoint, longest=longest)
    if not text.isprintable():
        raise MalformedAnswer(f"no usable {name}", endpoint=endpoint)
    return text


def moment_of(body: Members, name: str, endpoint: str) -> datetime | None:
    """An ISO 8601 time-stamp. Without a zone it is UTC, as in the spec."""
    text = text_of(body, name, endpoint, longest=LONGEST_CODE)
    if not text:
        return None
    try:
        return parse_moment(text, takes_days=True)
    except NotAMoment:
        raise MalformedAnswer(f"{name} is not a time", endpoint=endpoint) from None
