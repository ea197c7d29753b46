"""Follow every order of the steps of a few processes, with a crash possible at each step.

To follow another branch, the explorer begins anew and makes the same choices up to it. A state that
was seen before is not followed. A step that was taken before from the same rows, by a process that
had learned the same, does the same: so it is looked up, and not taken again.
"""

import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from time import process_time

from tests.interleavings.processes import Run, Saved
from tests.interleavings.states import Choice, Local, State, Text

#: The keys of states need fewer steps than a minute has seconds.
MOST_STEPS = 59

Judge = Callable[[Run], Iterator[str]]
Path = tuple[Choice, ...]


@dataclass
class Found:
    """What was met. ``stories``: what was wrong -> the shortest path to it, as a story."""

    states: int = 0
    transitions: int = 0
    ends: int = 0
    is_whole: bool = False
    seconds: float = 0.0
    stories: dict[str, list[str]] = field(default_factory=dict)

    def breaks(self, invariant: str) -> bool:
        return any(wrong.startswith(f"{invariant}: ") for wrong in self.stories)


class Explorer:
    """Follows all paths of ``run`` from where it is. ``judges`` tell what is wrong at an end."""

    def __init__(self, run: Run, *, judges: tuple[Judge, ...], deaths: int) -> None:
        self.run = run
        self.judges = judges
        self.found = Found()
        self._beginning = Saved(run)
        self._path: Path | None = None
        self._deaths = deaths
        #: What a step did: from what, by whom -> what the process is then, and what all see.
        self._taken: dict[tuple[Text, int, Local], tuple[Local, Text]] = {}

    def explore(self, *, seconds: float, until: str = "") -> Found:
        """Follow all paths, or as many as there is time for: seconds of one core.

        ``until``: the invariant with whose first violation the search ends.
        """
        began = process_time()
        self._go_to(())
        first = State.of(self.run, deaths=self._deaths)
        seen = {first.key}
        pending: list[tuple[State, Path]] = [(first, ())]
        while pending and process_time() < began + seconds:
            state, path = pending.pop()
            choices = list(state.choices())
            if not choices:
                self._judge(path)
            if until and self.found.breaks(until):
                break
            for choice in choices:
                after = self._after(state, path, choice)
                self.found.transitions += 1
                if after.key not in seen:
                    seen.add(after.key)
                    pending.append((after, (*path, choice)))
        self.found.states = len(seen)
        self.found.is_whole = not pending
        self.found.seconds = process_time() - began
        return self.found

    def _after(self, state: State, path: Path, choice: Choice) -> State:
        number = choice.number
        if choice.dies:
            return state.after_death(number)
        step = (state.shared, number, state.locals[number])
        if step not in self._taken:
            self._go_to((*path, choice))
            now = State.of(self.run, deaths=0)
            self._taken[step] = (now.locals[number], now.shared)
        local, shared = self._taken[step]
        return state.after(number, local, shared)

    def _go_to(self, path: Path) -> None:
        """Bring the run to the end of ``path``: onwards if it is on it, else from the beginning."""
        done = self._path
        if done is None or path[: len(done)] != done:
            self.run.restart(self._beginning)
            done = ()
        if len(path) > MOST_STEPS:
            raise ValueError("The keys of states need fewer steps.")
        for choice in path[len(done) :]:
            self.run.take(choice.number, dies=choice.dies)
        self._path = path

    def _judge(self, path: Path) -> None:
        """Note what is wrong at this end, by each of the judges."""
        self.found.ends += 1
        self._go_to(path)
        end = Saved(self.run)
        for judge in self.judges:
            end.restore(self.run)
            try:
                wrongs = list(judge(self.run))
            except Exception:  # noqa: BLE001  whatever it is, it is told
                wrongs = [traceback.format_exc(limit=-4)]
            story = [*self.run.story, f"Then: {judge.__doc__}"]
            for wrong in wrongs:
                shortest = self.found.stories.get(wrong)
                if shortest is None or len(story) < len(shortest):
                    self.found.stories[wrong] = story
        self._path = None
