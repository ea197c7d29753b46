"""What the drill has seen, found, and not tried."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

# What is said of a visit. The table has the last of them by the alphabet: the worst.
CANNOT_TELL = "-"
RIGHT = "ok"
WRONG = "wrong"
NOT_THERE = (CANNOT_TELL, "")
LEGEND = (
    "ok: everybody was answered as they have to be. wrong: see what was found.",
    "-: nobody can tell; the line below says why.",
)


@dataclass(slots=True)
class Report:
    """``findings``: each sentence once. ``untried``: an address, a person or a place -> why.

    ``unsure``: a place where somebody has to look -> why. ``unseen``: a thing that the drill cannot
    judge -> of which kind it is.
    """

    visits: list[dict[str, Any]] = field(default_factory=list)
    findings: list[str] = field(default_factory=list)
    untried: dict[str, str] = field(default_factory=dict)
    unsure: dict[str, str] = field(default_factory=dict)
    unseen: dict[str, str] = field(default_factory=dict)

    def find(self, sentence: str) -> None:
        if sentence not in self.findings:
            self.findings.append(sentence)

    def settle(self) -> None:
        """A closed address proves nothing if it was never open."""
        for visit in self.visits:
            why = self.untried.get(visit["address"])
            if why and visit["outcome"] == RIGHT:
                visit |= {"outcome": CANNOT_TELL, "why": why}

    def table(self) -> Iterator[str]:
        """The steps, and for each address a line for itself and one with a word for each step.

        Below them is each reason why nobody can tell.
        """
        steps = dict.fromkeys((visit["step"] for visit in self.visits), NOT_THERE)
        rows: dict[str, dict[str, tuple[str, str]]] = {}
        for visit in self.visits:
            row = rows.setdefault(visit["address"], dict(steps))
            step = visit["step"]
            row[step] = max(row[step], (visit["outcome"], visit["why"]))

        yield "  ".join(steps)
        for address, row in rows.items():
            yield address
            words: list[str] = []
            unknown: set[str] = set()
            for step, (mark, why) in row.items():
                words.append(mark.ljust(len(step)))
                if mark == CANNOT_TELL and why:
                    unknown.add(why)
            yield "  ".join(words).rstrip()
            for why in sorted(unknown):
                yield f"-: {why}"
        yield from LEGEND
