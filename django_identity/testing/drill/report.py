"""What the drill has seen, found, and not tried."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

# What is said of a visit. The table has the last of them by the alphabet: the worst.
NOBODY_CAN_TELL = "-"
RIGHT = "ok"
WRONG = "wrong"


class Step(StrEnum):
    """Who opens an address. ``docs/drill.md`` says what has to be."""

    NOBODY = "nobody"
    OTHER_WAY = "other way"
    UNPROVEN = "unproven"
    PROVEN = "proven"
    REVOKED = "revoked"
    ENDED = "ended"
    RUN_OUT = "run out"
    DISCONNECTED = "disconnected"
    ERASED = "erased"


@dataclass(slots=True)
class Report:
    """``findings``: each sentence once. ``untried``: an address, a place or a step -> why."""

    visits: list[dict[str, Any]] = field(default_factory=list)
    findings: list[str] = field(default_factory=list)
    untried: dict[str, str] = field(default_factory=dict)

    def find(self, sentence: str) -> None:
        if sentence not in self.findings:
            self.findings.append(sentence)

    def table(self) -> Iterator[str]:
        """A line for each address, with a word for each step."""
        words: dict[Any, str] = {}
        for visit in self.visits:
            place = (visit["address"], visit["step"])
            words[place] = max(words.get(place, ""), visit["outcome"])

        addresses = dict.fromkeys(address for address, _step in words)
        width = max(map(len, addresses), default=0)
        yield "  ".join([" " * width, *Step])
        for address in addresses:
            cells = [words.get((address, step), "").ljust(len(step)) for step in Step]
            yield "  ".join([address.ljust(width), *cells])
