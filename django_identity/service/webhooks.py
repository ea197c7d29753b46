"""Check the signature of a webhook delivery and parse its content. Pure functions.

``WebhookEvent.of`` knows a repeat, and ``lifecycle.said.events`` stores and applies the event.
"""

import hashlib
import hmac
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import Any, Self

from django_identity.event_types import KINDS, Event, canonical, kind_of
from django_identity.exceptions import EventRefused, MalformedAnswer
from django_identity.secrets import Secret
from django_identity.service.members import (
    LONGEST_CODE,
    LONGEST_NAME,
    LONGEST_SUBJECT,
    Members,
    is_subject,
)
from django_identity.service.moments import NotAMoment, parse_moment
from django_identity.strict_json import (
    LONGEST_INTEGER,
    JSONObject,
    NotStrictJSON,
    read_object,
)

ENDPOINT = "webhook"
LARGEST_BODY = 256 * 1024
DEEPEST = 16
# An escaped NUL: databases cannot store it. The JSON reader refuses a NUL as it is.
NUL = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")
SUBJECTS = ("user_id", "userId", "sub")
#: Members of every event, which name nobody.
ENVELOPE = ("event_type", "event_id", "timestamp")
# A member's name goes into the log, so it must not be a person's id. Ids have digits.
SHOWN_NAME = re.compile(r"[A-Za-z_-]{1,32}")
MOST_NAMED = 8
VERIFIED = "verified"
REJECTED = "rejected"


@dataclass(frozen=True, slots=True)
class NamedClaim:
    """The claim that a claim event names. An empty provider or type means every one."""

    claim_type: str = ""
    provider: str = ""

    @classmethod
    def parse(cls, content: JSONObject | None) -> Self:
        """Unreadable members are left out. A provider counts only beside a type.

        ``content``: None if the event was emptied. It names every claim then.
        """
        if content is None:
            return cls()
        claim_type = _said(content, "claim_type")
        if not claim_type:
            return cls()
        return cls(claim_type, _said(content, "provider"))


def parse_event(body: bytes, *, subject_paths: Iterable[str] = ()) -> Event:
    """Parse ``body``. ``subject_paths``: where else the subject may be, see ``_subject``.

    Raises ``EventRefused``, which has only the digest of the body.
    """
    try:
        return _event(_members_of(body), subject_paths)
    except (NotStrictJSON, NotAMoment, MalformedAnswer) as error:
        detail = f"{error} (body {hashlib.sha256(body).hexdigest()})"
        raise EventRefused(detail) from None


def is_signed(body: bytes, *, signature: str, secrets: Iterable[Secret]) -> bool:
    """Whether ``signature`` is the HMAC of ``body`` with one of ``secrets``.

    All secrets are tried in any case: the time is the same whichever fits.
    """
    sent = signature.encode("utf-8", "surrogatepass")
    fits = False
    for secret in secrets:
        key = secret.reveal().encode()
        expected = hmac.new(key, body, hashlib.sha256).hexdigest()
        fits |= hmac.compare_digest(expected.encode(), sent)
    return fits


def _said(content: JSONObject, name: str) -> str:
    """A member that may be missing. Anything but printable text counts as missing."""
    try:
        return Members(content, ENDPOINT).required(name, longest=LONGEST_NAME)
    except MalformedAnswer:
        return ""


def _members_of(body: bytes) -> JSONObject:
    """The members of an event. Raises ``NotStrictJSON``.

    An event that takes something away is read with malformed other members, too.
    """
    try:
        return _strictly(body)
    except NotStrictJSON:
        members = _loosely(body)
        if not kind_of(canonical(str(members.get("event_type")))).takes_away:
            raise
        return members


def _strictly(body: bytes) -> JSONObject:
    if NUL.search(body):
        raise NotStrictJSON("has a NUL character")
    return read_object(body, deepest=DEEPEST)


def _loosely(body: bytes) -> JSONObject:
    """The members as far as they can be read, and of the data what can be stored."""
    # Octets that are no UTF-8 become surrogates, which are in no id that can be used.
    text = body.decode("utf-8-sig", "surrogateescape")
    try:
        members = json.loads(
            text,
            strict=False,
            object_pairs_hook=_said_once,
            parse_int=_beginning,
        )
    except (ValueError, RecursionError):
        return {}
    if not isinstance(members, dict):
        return {}
    content = members.pop("data", None)
    members = _stored(members)
    if isinstance(content, dict):
        members["data"] = _stored(content)
    return members


def _said_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Which value of a repeated name counts is undefined."""
    times = Counter(name for name, _value in pairs)
    return {name: value for name, value in pairs if times[name] == 1}


def _beginning(digits: str) -> int:
    """The number, or one that is still too long: Python reads no more than 4,300 digits."""
    return int(digits[: LONGEST_INTEGER + 2])


def _stored(members: JSONObject) -> dict[str, Any]:
    """The members that every database can hold."""
    stored: dict[str, Any] = {}
    for name, value in members.items():
        with suppress(NotStrictJSON, RecursionError):
            stored |= _strictly(json.dumps({name: value}).encode())
    return stored


def _event(members: JSONObject, subject_paths: Iterable[str]) -> Event:
    read = Members(members, ENDPOINT)
    event_type = canonical(read.required("event_type", longest=LONGEST_CODE))
    occurred_at = parse_moment(read.required("timestamp", longest=LONGEST_CODE))
    content = members.get("data")
    if not isinstance(content, dict):
        read.require(kind_of(event_type).takes_away, "data is not an object")
        content = {}
    members = {**members, "data": content}
    subject = _subject(members, subject_paths, is_known_type=event_type in KINDS)
    return Event(
        event_id=read.required("event_id", longest=LONGEST_SUBJECT),
        event_type=event_type,
        occurred_at=occurred_at,
        subject=subject,
        content=content,
        members=() if subject else _paths_of(members),
    )


def _subject(members: JSONObject, paths: Iterable[str], *, is_known_type: bool) -> str:
    """The subject, from the members of ``SUBJECTS`` in the data, which must agree.

    If all of them are missing, it is at the first of ``paths`` with a usable text. Empty: the event
    names nobody. Raises ``MalformedAnswer``.
    """
    content = members["data"]
    named = {name: content[name] for name in SUBJECTS if not _is_blank(content, name)}
    if not is_known_type and not all(
        isinstance(value, str) for value in named.values()
    ):
        return ""
    if named:
        return Members(named, ENDPOINT).named_subject(SUBJECTS) or ""
    for path in paths:
        value = _value_at(path, members)
        if is_subject(value):
            return value
    return ""


def _is_blank(content: JSONObject, name: str) -> bool:
    """Whether the member is absent, null, or white space alone."""
    value = content.get(name)
    if isinstance(value, str):
        return not value.strip()
    return value is None


def _value_at(path: str, members: JSONObject) -> object:
    """What is at the end of ``path``, such as ``data.user.id``. None if the path ends early."""
    value: Any = members
    for name in path.split("."):
        if not isinstance(value, Mapping):
            return None
        value = value.get(name)
    return value


def _paths_of(members: JSONObject) -> tuple[str, ...]:
    """The paths of the event's own members alone, for the operator."""
    own = {name: value for name, value in members.items() if name not in ENVELOPE}
    paths = dict.fromkeys(_walk(own))
    return tuple(islice(paths, MOST_NAMED))


def _walk(members: JSONObject) -> Iterator[str]:
    for name, value in members.items():
        shown = "?"
        if SHOWN_NAME.fullmatch(name):
            shown = name
        if not isinstance(value, Mapping):
            yield shown
            continue
        for below in _walk(value):
            yield f"{shown}.{below}"
