"""What a gate may ask for: a site's text, and its comparable value.

The claim ``"age_over_18"`` must be true. Of ``"country_resident=PT|FR"`` one value must be proven.
Beside claims there are a KYC level, a scope and a recent sign-in.

Each kind of requirement is known to:

- ``standing.Standing.shortfall``, why its gate is closed, and ``labels.has_words``, whether pages
  have words for it: mypy refuses a kind that one of them leaves out;
- ``gates``: ``Gate`` with its words, a decorator and a mixin; ``api.permissions``;
  ``templatetags.identity``;
- ``gates.closed``, ``parse`` and ``views.sign_in``, how a closed gate names it to the login page;
- ``reasons`` and ``texts.advice``, if it is closed for a reason of its own;
- ``testing.drill``, at which step of a person it is lost (``walk``), and how a told address
  asks for it (``doors``); ``instruments.gate_map``, for the scopes that gates ask for.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import ClassVar, Self

from django.core.exceptions import ImproperlyConfigured

#: The claims and the levels that the spec names. The service may have further ones.
CLAIMS = ("kyc_verified", "age_over_18", "country_resident", "unique_human")
LEVELS = ("level_1", "level_2")
LEVEL = re.compile(r"level_(\d{1,4})", re.ASCII)
#: What pages and problems call a sign-in a short while ago.
RECENT_SIGN_IN = "recent_sign_in"

EXAMPLE_CLAIM = 'A claim is a text such as "age_over_18" or "country_resident=PT|FR".'
EXAMPLE_LEVEL = 'A KYC level is a text such as "level_2".'
EXAMPLE_SCOPE = 'A scope is a text such as "documents:read".'
EXAMPLE_MINUTES = "The minutes are a number above 0."


class NotARequirement(ImproperlyConfigured):
    """A gate cannot ask for ``value``.

    ``rule``: what is wrong, without the value, which a template may have from a person. ``place``:
    where the gate is made, if known.
    """

    def __init__(
        self,
        value: object,
        rule: str,
        *,
        place: str = "",
    ) -> None:
        super().__init__(f"{place}A gate cannot ask for {value!r}. {rule}")
        self.value = value
        self.rule = rule


def is_level(text: str) -> bool:
    """Whether ``text`` has the form of a KYC level."""
    return LEVEL.fullmatch(text) is not None


def split_claim(text: str) -> tuple[str, tuple[str, ...]]:
    """The claim's name, and the accepted values: empty if it must be true."""
    claim_type, asks_value, values = text.partition("=")
    if not asks_value:
        return claim_type, ()
    return claim_type, tuple(values.split("|"))


@dataclass(frozen=True, slots=True)
class RequiredClaim:
    """A proven claim: true, or with one of ``values``."""

    code: ClassVar[str] = "claim_missing"

    claim_type: str
    values: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        _require_text(self.claim_type, str(self), EXAMPLE_CLAIM)
        for value in self.values:
            _require_text(value, str(self), EXAMPLE_CLAIM)
            if "=" in value or "|" in value:
                raise NotARequirement(
                    str(self),
                    f"A value has no = and no |. {EXAMPLE_CLAIM}",
                )

        if "|" in self.claim_type:
            rule = f"Only the values of one claim are alternatives. {EXAMPLE_CLAIM}"
            raise NotARequirement(str(self), rule)
        if is_level(self.claim_type):
            raise NotARequirement(
                str(self),
                "It is a KYC level: use kyc_level_required.",
            )
        if ":" in self.claim_type:
            raise NotARequirement(str(self), "It is a scope: use scope_required.")
        if self.claim_type == RECENT_SIGN_IN:
            raise NotARequirement(
                str(self),
                "It is no claim: use recent_sign_in_required.",
            )

    @classmethod
    def parse(cls, text: object) -> Self:
        """The claim that ``text`` asks for. Raises ``NotARequirement``."""
        if not isinstance(text, str):
            raise NotARequirement(text, EXAMPLE_CLAIM)
        claim_type, values = split_claim(text)
        without_repeats = tuple(dict.fromkeys(values))
        return cls(claim_type, without_repeats)

    def __str__(self) -> str:
        if not self.values:
            return f"{self.claim_type}"
        return f"{self.claim_type}={'|'.join(self.values)}"


@dataclass(frozen=True, slots=True)
class RequiredLevel:
    """A KYC level, or a higher one. A level of another form than ``level_2`` equals only itself."""

    code: ClassVar[str] = "kyc_level_missing"

    level: str

    def __post_init__(self) -> None:
        _require_text(self.level, self.level, EXAMPLE_LEVEL)
        if self.level in CLAIMS or any(sign in self.level for sign in "=|:"):
            raise NotARequirement(self.level, EXAMPLE_LEVEL)

    def __str__(self) -> str:
        return self.level

    def is_reached_by(self, level: str) -> bool:
        """Whether somebody at ``level`` meets this."""
        reached = LEVEL.fullmatch(level)
        required = LEVEL.fullmatch(self.level)
        if reached is None or required is None:
            return level == self.level
        return int(reached[1]) >= int(required[1])


@dataclass(frozen=True, slots=True)
class RequiredScope:
    """A scope that the person has allowed."""

    code: ClassVar[str] = "scope_missing"

    scope: str

    def __post_init__(self) -> None:
        _require_text(self.scope, self.scope, EXAMPLE_SCOPE)
        if " " in self.scope:
            raise NotARequirement(
                self.scope,
                f"Each scope has a gate of its own. {EXAMPLE_SCOPE}",
            )

    def __str__(self) -> str:
        return self.scope


@dataclass(frozen=True, slots=True)
class RecentSignIn:
    """A return from the service in this session, at most ``minutes`` ago."""

    code: ClassVar[str] = "sign_in_not_recent"

    minutes: float

    def __post_init__(self) -> None:
        # ``type``, because True and False are numbers too.
        is_number = type(self.minutes) in (int, float)
        if not is_number or not math.isfinite(self.minutes) or self.minutes <= 0:
            raise NotARequirement(self.minutes, EXAMPLE_MINUTES)

    def __str__(self) -> str:
        return RECENT_SIGN_IN


Requirement = RequiredClaim | RequiredLevel | RequiredScope | RecentSignIn


def parse(text: str) -> Requirement:
    """What a problem's ``missing`` names: a level, a sign-in or a claim, and no scope.

    Only the settings tell which texts are scopes. Raises ``NotARequirement``.
    """
    if text == RECENT_SIGN_IN:
        return RecentSignIn(minutes=1)
    if is_level(text):
        return RequiredLevel(text)
    return RequiredClaim.parse(text)


def _require_text(
    text: object,
    whole: object,
    rule: str,
) -> None:
    """Raise ``NotARequirement`` unless ``text`` is one that a claim or a scope may have.

    A space around it, as in ``"country_resident=PT | FR"``, would close the gate to everybody.
    """
    if not isinstance(text, str) or not text.isprintable() or not text.strip():
        raise NotARequirement(whole, rule)
    if text != text.strip():
        raise NotARequirement(whole, f"It has a space at an end. {rule}")
