"""Which of a URLconf's routes answers an address first.

Django takes the first route that matches. Each route has samples, such as ``loans/7/`` and
``loans/some-page/``, with which the earlier ones are tried.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from django.urls.resolvers import RegexPattern

# What may stand in the place of a parameter, for each kind of converter.
WORDS = (
    "some page", "some-page", "some/page", "7", "2026", "00000000-0000-4000-8000-000000000000",
)  # fmt: skip
GROUP = re.compile(r"\((?:\?P<\w+>)?[^()]*\)")
ESCAPED = re.compile(r"\\([./-])")
LITERAL = re.compile(r"\^([\w/ -]*)")
# A million comparisons take about a second.
MOST_COMPARISONS = 1_000_000


@dataclass(frozen=True, slots=True)
class Route:
    """The patterns from the root of the URLconf to a view, and their address in the map."""

    url: str
    patterns: tuple[Any, ...]

    @property
    def is_fixed(self) -> bool:
        """Whether it is one address, without parameters."""
        last = self.patterns[-1]
        # A regex without an end matches whatever goes on behind it.
        is_open = isinstance(last, RegexPattern) and not str(last).endswith("$")
        return not is_open and all(_is_fixed(pattern) for pattern in self.patterns)

    def samples(self) -> tuple[str, ...]:
        """Addresses that it matches. Empty if none can be made, as for a difficult regex."""
        if self.is_fixed:
            return (self.start(),)
        samples: list[str] = []
        for word in WORDS:
            texts = [_sample_of(pattern, word) for pattern in self.patterns]
            if None not in texts:
                samples.append("".join(map(str, texts)))
        return tuple(dict.fromkeys(samples))

    def start(self) -> str:
        """The text with which each of its addresses begins."""
        start = ""
        for pattern in self.patterns:
            start += _start_of(pattern)
            if not _is_fixed(pattern):
                break
        return start

    def matches(self, address: str) -> bool:
        """Whether it matches, before a converter is called, which may read from the database.

        What a converter then refuses counts as matched.
        """
        for pattern in self.patterns:
            match = pattern.regex.search(address)
            if match is None:
                return False
            address = address[match.end() :]
        return True


class Earlier(NamedTuple):
    """An added route, and its place in the order."""

    place: int
    route: Route


class Answered(NamedTuple):
    """By which earlier routes a route's samples are answered: sample -> address in the map.

    ``is_known``: False if the route could not be compared.
    """

    by: dict[str, str]
    is_known: bool


class Routes:
    """The routes of a URLconf, which are added in its order."""

    def __init__(self) -> None:
        self._fixed: dict[str, Earlier] = {}
        self._others: dict[str, list[Earlier]] = {}
        self._count = 0
        self._comparisons = 0

    def add(self, route: Route) -> Answered:
        """Add the route, and find the earlier ones that answer in its place."""
        samples = route.samples()
        answered: dict[str, str] = {}
        for sample in samples:
            found = list(self._matching(sample, is_fixed=route.is_fixed))
            if found:
                answered[sample] = min(found).route.url
        is_known = bool(samples) and self._comparisons < MOST_COMPARISONS

        self._count += 1
        added = Earlier(self._count, route)
        if route.is_fixed:
            self._fixed.setdefault(samples[0], added)
        else:
            self._others.setdefault(route.start(), []).append(added)
        return Answered(answered, is_known)

    def _matching(self, address: str, *, is_fixed: bool) -> Iterator[Earlier]:
        if is_fixed and address in self._fixed:
            yield self._fixed[address]
        for length in range(len(address) + 1):
            for earlier in self._others.get(address[:length], ()):
                if self._comparisons == MOST_COMPARISONS:
                    return
                self._comparisons += 1
                if earlier.route.matches(address):
                    yield earlier


def _is_fixed(pattern: Any) -> bool:
    if isinstance(pattern, RegexPattern):
        return LITERAL.fullmatch(str(pattern).removesuffix("$")) is not None
    return not pattern.converters


def _start_of(pattern: Any) -> str:
    text = str(pattern)
    if not isinstance(pattern, RegexPattern):
        return text.partition("<")[0]
    literal = LITERAL.match(text)
    if literal is None or "|" in text:
        return ""
    # A sign of repetition is about the character before it.
    is_repeated = text[literal.end() :].startswith(("*", "?", "{"))
    return literal[1][:-1] if is_repeated else literal[1]


def _sample_of(pattern: Any, word: str) -> str | None:
    """An address that the pattern matches, with ``word`` wherever a parameter may have it."""
    if _is_fixed(pattern):
        return _start_of(pattern)
    text = str(pattern)
    if isinstance(pattern, RegexPattern):
        text = GROUP.sub(word, text.removeprefix("^").removesuffix("$"))
        text = ESCAPED.sub(r"\1", text)
        match = pattern.regex.search(text)
        return text if match is not None and match.end() == len(text) else None
    for name, converter in pattern.converters.items():
        fitting = _fitting(converter, word)
        if fitting is None:
            return None
        text = re.sub(rf"<(?:[^<>:]+:)?{name}>", fitting, text)
    return text


def _fitting(converter: Any, word: str) -> str | None:
    """``word``, or the first other one that the converter takes."""
    for each in (word, *WORDS):
        if re.fullmatch(converter.regex, each):
            return each
    return None
