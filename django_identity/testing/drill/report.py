"""What the drill has seen: a row for each visit, findings, and what it has not seen."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum


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


@dataclass(frozen=True, slots=True)
class Row:
    """One visit. ``is_right``: None where nobody can tell."""

    address: str
    step: Step
    person: str
    status: int
    is_right: bool | None


@dataclass(slots=True)
class Report:
    """``findings``: each sentence once. ``untried``: an address, a place or a step -> why."""

    rows: list[Row] = field(default_factory=list)
    findings: list[str] = field(default_factory=list)
    untried: dict[str, str] = field(default_factory=dict)

    def find(self, sentence: str) -> None:
        if sentence not in self.findings:
            self.findings.append(sentence)

    def note(self, address: str, step: Step, person: str, status: int, wrong: str | None) -> None:
        """Note a visit. ``wrong``: an empty text for nothing, None if nobody can tell."""
        if wrong:
            self.find(wrong)
        is_right = None if wrong is None else not wrong
        self.rows.append(Row(address, step, person, status, is_right))

    def table(self) -> Iterator[str]:
        """A line for each address, with a word for each step."""
        addresses = dict.fromkeys(row.address for row in self.rows)
        width = max(map(len, addresses), default=0)
        yield "  ".join([" " * width, *Step])
        for address in addresses:
            words = [self._word(address, step).ljust(len(step)) for step in Step]
            yield "  ".join([address.ljust(width), *words])

    def _word(self, address: str, step: Step) -> str:
        seen = {row.is_right for row in self.rows if (row.address, row.step) == (address, step)}
        if False in seen:
            return "WRONG"
        return "ok" if True in seen else "-"
