"""Connect: find the code in pasted text, and parse the service's answer to it. Nothing is sent.

A code is ``CNX-XXXX-XXXX`` with upper-case letters and digits. People paste it in lower case, with
spaces or typographic dashes, without hyphens, or with the sentence around it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from typing import Any

from django_identity.exceptions import FlowError, SubjectMismatch
from django_identity.service.answers import KycStatus, Profile
from django_identity.service.members import LONGEST_SUBJECT, Members

LONGEST_PASTE = 1000
LONGEST_SIGNATURE = 8192
PROFILE_SCOPE, KYC_SCOPE = "profile:basic", "kyc:status"
MINUS = "\u2212"
# A code must stand alone: ``CNX-ABCD-12345`` contains no code.
_BEFORE, _AFTER = r"(?<![A-Z0-9])", r"(?!-?[A-Z0-9])"
_WRITTEN_OUT = re.compile(_BEFORE + r"CNX ?- ?([A-Z0-9]{4}) ?- ?([A-Z0-9]{4})" + _AFTER)
_ALONE = re.compile(r"\ACNX([A-Z0-9]{4})([A-Z0-9]{4})\Z")
_LOOSE = re.compile(_BEFORE + r"CNX[ -]*([A-Z0-9]{4})[ -]*([A-Z0-9]{4})" + _AFTER)


def code_in(pasted: str) -> str:
    """The code in ``pasted``, in its canonical form.

    Raises ``FlowError`` if the text contains no code, or two different codes.
    """
    if len(pasted) > LONGEST_PASTE:
        raise FlowError("longer than any sentence around a code", code="connect_code_malformed")
    text = _plain(pasted)
    # A text that contains nothing else may have any spacing.
    alone = re.sub("[ -]", "", text)
    found = _codes(_WRITTEN_OUT, text) or _codes(_ALONE, alone)
    if not found:
        # In a sentence without hyphens a code with a digit wins: "CNX code from" is text.
        loose = _codes(_LOOSE, text)
        found = {code for code in loose if any(map(str.isdigit, code))} or loose
    if len(found) != 1:
        raise FlowError(f"{len(found)} codes", code="connect_code_malformed")
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


@dataclass(frozen=True, slots=True, repr=False)
class ConnectAnswer:
    """The service's data for a Connect code, limited to the requested scopes.

    ``received`` is the complete ``data``, for a policy that can check the ``signature`` (the
    service does not publish how the signature is made). It is not stored.
    """

    request_id: str
    user_id: str
    profile: Profile
    kyc: KycStatus | None
    issued_at: datetime
    signature: str
    received: Mapping[str, Any]

    @classmethod
    def parse(cls, body: Mapping[str, Any], *, asked: Collection[str]) -> ConnectAnswer:
        """Parse the ``data`` of the answer. Raises ``MalformedAnswer``; ``SubjectMismatch``."""
        read = Members(body, "connect")
        if body.get("status") != "approved":
            raise read.wrong("status is not approved")
        subject = read.subject("user_id")
        shared = _shared(read, "profile") if PROFILE_SCOPE in asked else {}
        profile = Profile.parse({"id": subject, **(shared or {})})
        stated = _shared(read, "kyc") if KYC_SCOPE in asked else None
        kyc = None if stated is None else KycStatus.parse(stated)
        if profile.id != subject:
            raise SubjectMismatch("about another subject", endpoint="connect")
        if kyc is not None and not kyc.status:
            raise read.wrong("data.kyc without a status")
        if (issued_at := read.moment("issued_at")) is None:
            raise read.wrong("no issued_at")
        return cls(
            request_id=read.required("request_id", longest=LONGEST_SUBJECT),
            user_id=subject,
            profile=profile,
            kyc=kyc,
            issued_at=issued_at,
            signature=read.required("signature", longest=LONGEST_SIGNATURE),
            received=MappingProxyType(body),
        )


def _shared(read: Members, name: str) -> dict[str, Any] | None:
    """The member ``profile`` or ``kyc``, in the result's member ``data`` or in the result itself.

    The spec's "data.profile" can mean both. Null: there is nothing to share.
    """
    within = read.body.get("data", {})
    places = [
        place for place in (within, read.body) if isinstance(place, Mapping) and name in place
    ]
    if len(places) != 1 or not isinstance(places[0][name], dict | None):
        raise read.wrong(f"no usable data.{name}")
    shared: dict[str, Any] | None = places[0][name]
    return shared
