"""Connect: find the code in pasted text, and parse the service's answer to it.

A code is ``CNX-XXXX-XXXX`` with upper-case letters and digits. People paste it in lower case, with
spaces or typographic dashes, with its hyphens left out, or with the sentence around it.
"""

import re
import unicodedata
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from types import MappingProxyType
from typing import Any, Self

from django_identity.exceptions import FlowError, SubjectMismatch
from django_identity.service.answers import KycStatus, Profile
from django_identity.service.members import LONGEST_SUBJECT, Members
from django_identity.strict_json import JSONObject

LONGEST_PASTE = 1000
LONGEST_SIGNATURE = 8192
PROFILE_BASIC = "profile:basic"
KYC_STATUS = "kyc:status"
# A code must stand alone: ``CNX-ABCD-12345`` contains no code.
WRITTEN_OUT = re.compile(
    r"\bCNX ?- ?([A-Z0-9]{4}) ?- ?([A-Z0-9]{4})(?!-?[A-Z0-9])",
    re.ASCII,
)
LOOSE = re.compile(r"\bCNX[ -]*([A-Z0-9]{4})[ -]*([A-Z0-9]{4})(?!-?[A-Z0-9])", re.ASCII)
# Of any script: people type with the digits of their keyboard.
DIGIT = re.compile(r"\d")
DASHES = re.compile("[\u2010-\u2015\u2212_]")
INVISIBLE = re.compile("[\u00ad\u061c\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]")


def code_in(pasted: str) -> str:
    """The code in ``pasted``, in its canonical form.

    Raises ``FlowError`` if the text contains no code, or two different codes.
    """
    if len(pasted) > LONGEST_PASTE:
        raise FlowError(
            "longer than any sentence around a code",
            code="connect_code_malformed",
        )
    text = unicodedata.normalize("NFKC", pasted).upper()
    text = DIGIT.sub(lambda digit: str(int(digit[0])), text)
    text = INVISIBLE.sub("", text)
    text = DASHES.sub("-", text)
    text = " ".join(text.split())
    # With hyphens it may stand beside words that look like one ("CNX code from").
    found = WRITTEN_OUT.findall(text) or LOOSE.findall(text)
    codes = {f"CNX-{first}-{second}" for first, second in found}
    if len(codes) != 1:
        raise FlowError(f"{len(codes)} codes", code="connect_code_malformed")
    return codes.pop()


@dataclass(frozen=True, slots=True, repr=False)
class ConnectAnswer:
    """The service's data for a Connect code, limited to the requested scopes.

    ``received`` is the complete ``data``, for a policy that can check the ``signature`` (how it is
    made is unpublished). Only the policy gets it.
    """

    request_id: str
    user_id: str
    profile: Profile
    kyc: KycStatus | None
    issued_at: datetime
    signature: str
    received: JSONObject

    @classmethod
    def parse(cls, body: JSONObject, *, asked: Collection[str]) -> Self:
        """Parse the ``data`` of the answer. Raises ``MalformedAnswer``; ``SubjectMismatch``."""
        members = Members(body, "connect")
        members.require(body.get("status") == "approved", "status is not approved")
        subject = members.subject("user_id")

        named = {"id": subject}
        if PROFILE_BASIC in asked:
            named |= _shared(members, "profile") or {}
        profile = replace(Profile.parse(named), by_code=True)

        kyc = None
        shared_kyc = _shared(members, "kyc") if KYC_STATUS in asked else None
        if shared_kyc is not None:
            kyc = KycStatus.parse(shared_kyc)

        if profile.id != subject:
            raise SubjectMismatch("about another subject", endpoint="connect")
        members.require(kyc is None or kyc.status, "data.kyc without a status")
        issued_at = members.moment("issued_at")
        if issued_at is None:
            raise members.wrong("no issued_at")
        return cls(
            request_id=members.required("request_id", longest=LONGEST_SUBJECT),
            user_id=subject,
            profile=profile,
            kyc=kyc,
            issued_at=issued_at,
            signature=members.required("signature", longest=LONGEST_SIGNATURE),
            received=MappingProxyType(body),
        )


def _shared(members: Members, name: str) -> Any:
    """The member ``profile`` or ``kyc``, in the result's member ``data`` or in the result itself.

    The spec's "data.profile" can mean both. Null means that the person keeps it private.
    """
    shared: list[Any] = []
    for place in (members.body.get("data"), members.body):
        if isinstance(place, Mapping) and name in place:
            shared.append(place[name])
    detail = f"no usable data.{name}"
    # In both places: nobody could say which one counts.
    members.require(len(shared) == 1, detail)
    members.require(isinstance(shared[0], dict | None), detail)
    return shared[0]
