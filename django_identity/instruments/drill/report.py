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

    ``unsure``: where somebody has to look. ``unseen``: a kind of things -> those that the drill met
    and cannot judge.
    """

    visits: list[dict[str, Any]] = field(default_factory=list)
    findings: list[str] = field(default_factory=list)
    untried: dict[str, str] = field(default_factory=dict)
    unsure: list[str] = field(default_factory=list)
    unseen: dict[str, list[str]] = field(default_factory=dict)

    def find(self, sentence: str) -> None:
        _add(self.findings, sentence)

    def doubt(self, sentence: str) -> None:
        _add(self.unsure, sentence)

    def see_not(self, kind: str, thing: str) -> None:
        _add(self.unseen.setdefault(kind, []), thing)

    def settle(self) -> None:
        """That an address is closed says nothing if it was open to nobody."""
        opened = {
            visit["address"]
            for visit in self.visits
            if visit["must_open"] and visit["outcome"] != CANNOT_TELL
        }
        for visit in self.visits:
            address = visit["address"]
            if address in opened:
                self.untried.pop(address, None)
            elif visit["outcome"] == RIGHT:
                visit["outcome"] = CANNOT_TELL
                visit["why"] = self.untried[address]

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
            words = [mark.ljust(len(step)) for step, (mark, _) in row.items()]
            yield "  ".join(words).rstrip()
            yield from dict.fromkeys(f"-: {why}" for _, why in row.values() if why)
        yield from LEGEND


def _add(sentences: list[str], sentence: str) -> None:
    if sentence not in sentences:
        sentences.append(sentence)
