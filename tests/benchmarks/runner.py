"""Measure contenders against each other, alternating in one run on the same machine."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from statistics import median


@dataclass(frozen=True)
class Result:
    """What one benchmark found.

    ``ratios``: our rate divided by the other's, so more is better for us. ``figures``: numbers that
    explain them, each with its unit in its name.
    """

    benchmark: str
    ratios: Mapping[str, float]
    figures: Mapping[str, float]

    def as_json(self) -> dict[str, object]:
        return asdict(self)

    def as_table(self) -> str:
        rows = [(f"ratio {name}", value) for name, value in self.ratios.items()]
        rows += self.figures.items()
        width = max(len(name) for name, _ in rows)
        lines = [f"{name:<{width}}  {value:10.3f}" for name, value in rows]
        return "\n".join([f"benchmark {self.benchmark}", *lines])


def seconds_of(
    contenders: Mapping[str, Callable[[], object]],
    *,
    rounds: int,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, float]:
    """The median seconds of one call of each contender, called in turn ``rounds`` times."""
    taken: dict[str, list[float]] = {name: [] for name in contenders}
    for contender in contenders.values():
        contender()
    for _ in range(rounds):
        for name, contender in contenders.items():
            started = clock()
            contender()
            taken[name].append(clock() - started)
    return {name: median(seconds) for name, seconds in taken.items()}
