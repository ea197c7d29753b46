"""What the drill has seen, found, and not tried."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

# What is said of a visit. The table has the last of them by the alphabet: the worst.
CANNOT_TELL = "-"
RIGHT = "ok"
WRONG = "wrong"
LEGEND = (
    "ok: everybody was answered as they have to be. wrong: see what was found.",
    "-: nobody can tell; the line below says why.",
)


@dataclass(slots=True)
class Report:
    """``findings``: each sentence once. ``untried``: an address, a person or a place -> why.

    ``unsure``: places where somebody has to look. ``unseen``: a kind of things -> those that the
    drill met and cannot judge.
    """

    visits: list[dict[str, Any]] = field(default_factory=list)
    findings: list[str] = field(default_factory=list)
    untried: dict[str, str] = field(default_factory=dict)
    unsure: list[str] = field(default_factory=list)
    unseen: dict[str, list[str]] = field(default_factory=dict)

    def find(self, sentence: str) -> None:
        if sentence not in self.findings:
            self.findings.append(sentence)

    def doubt(self, sentence: str) -> None:
        if sentence not in self.unsure:
            self.unsure.append(sentence)

    def see_not(self, kind: str, thing: str) -> None:
        things = self.unseen.setdefault(kind, [])
        if thing not in things:
            things.append(thing)

    @property
    def has_tried(self) -> bool:
        """Whether any address was open to somebody."""
        return any(visit["address"] not in self.untried for visit in self.visits)

    def table(self) -> Iterator[str]:
        """The steps, and for each address a line for itself and one with a word for each step."""
        steps = dict.fromkeys(
            (visit["step"] for visit in self.visits), (CANNOT_TELL, "")
        )
        rows: dict[str, dict[str, tuple[str, str]]] = {}
        for visit in self.visits:
            address = visit["address"]
            seen = visit["outcome"], visit["why"]
            if address in self.untried and visit["outcome"] == RIGHT:
                # That it is closed says nothing: it was open to nobody.
                seen = CANNOT_TELL, self.untried[address]
            row = rows.setdefault(address, dict(steps))
            row[visit["step"]] = max(row[visit["step"]], seen)

        yield "  ".join(steps)
        for address, row in rows.items():
            yield address
            words = [row[step][0].ljust(len(step)) for step in steps]
            yield "  ".join(words).rstrip()
            reasons = {why: None for mark, why in row.values() if mark == CANNOT_TELL}
            if reasons:
                yield f"-: {'; '.join(reasons)}"
        yield from LEGEND
