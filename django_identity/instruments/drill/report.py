"""What the drill has seen, found, and not tried."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

# What is said of a visit. The table has the last of them by the alphabet: the worst.
NOBODY_CAN_TELL = "-"
RIGHT = "ok"
WRONG = "wrong"


@dataclass(slots=True)
class Report:
    """``findings``: each sentence once. ``untried``: an address, a person or a place -> why."""

    visits: list[dict[str, Any]] = field(default_factory=list)
    findings: list[str] = field(default_factory=list)
    untried: dict[str, str] = field(default_factory=dict)

    def find(self, sentence: str) -> None:
        if sentence not in self.findings:
            self.findings.append(sentence)

    def table(self) -> Iterator[str]:
        """A line for each address, with a word for each step."""
        steps = dict.fromkeys(visit["step"] for visit in self.visits)
        rows: dict[str, dict[str, str]] = {}
        for visit in self.visits:
            step = visit["step"]
            row = rows.setdefault(visit["address"], dict.fromkeys(steps, ""))
            row[step] = max(row[step], visit["outcome"])

        width = max(map(len, rows), default=0)
        yield "  ".join([" " * width, *steps])
        for address, row in rows.items():
            words = [word.ljust(len(step)) for step, word in row.items()]
            yield "  ".join([address.ljust(width), *words])
