"""A person to link: how they came, and what the service said of them."""

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from django_identity.conf.rules import Scopes
from django_identity.lifecycle.ground.verified import VerifiedAnswer
from django_identity.models import Purpose
from django_identity.service.answers import KycStatus, Profile, TokenAnswer


class Arrival(StrEnum):
    """How the person came: by a full sign-in, with its purpose, or with a Connect code."""

    SIGN_IN = Purpose.SIGN_IN
    LINK = Purpose.LINK
    RENEW = Purpose.RENEW
    CODE = "code"


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkRequest:
    """A person to link: how they came, and the service's data, checked to be about one subject.

    ``user_id``: the key of the user who is signed in now, or None. ``began_at``: when the sign-in
    or the code began; ``said_at``: when the service stated the level. A sign-in has ``tokens`` and
    verified ``claims``; with a Connect code both are empty. ``unread``: the code of the error at
    claims or level, or an empty text.
    """

    arrival: Arrival
    user_id: Any
    began_at: datetime
    said_at: datetime
    subject: str = field(repr=False)
    scopes: Scopes
    profile: Profile
    kyc: KycStatus | None
    tokens: TokenAnswer | None = None
    claims: VerifiedAnswer | None = None
    unread: str = ""
