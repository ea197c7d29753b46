"""Processes that are switched, and what happens on one path.

A process is a greenlet that runs the package's own functions. ``control`` says where it pauses.
Nothing is left to chance, so the same choices from the same beginning lead to the same state.
"""

import sqlite3
import traceback
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, field, fields, is_dataclass
from datetime import datetime
from typing import Any

from django.db import connection
from django.db.models import Model
from greenlet import greenlet

from django_identity import exceptions
from tests.interleavings.world import Clock, Service, text_of

OURS = ("django_identity.", "tests.interleavings.actors")


class Process:
    """One actor. ``at``: what it does next. ``learned``: all that it has read so far."""

    def __init__(self, name: str, work: Callable[[], str]) -> None:
        self.name = name
        self.at = ""
        self.sends: object = None
        self.learned: list[str] = []
        self.outcome = ""
        self.fault = ""
        self.waits = False
        self.has_begun = False
        self._learned_before: int | None = None
        self._work = work
        self._greenlet = greenlet(self._run)

    def _run(self) -> None:
        try:
            self.outcome = self._work()
        except exceptions.IdentityError as refused:
            self.outcome = f"refused: {refused.code}"
        except Exception as error:  # noqa: BLE001  whatever it is, an invariant tells it
            self.outcome = f"raised {type(error).__name__}"
            self.fault = traceback.format_exc(limit=-4)

    @property
    def is_over(self) -> bool:
        return self.outcome != ""

    def go_on(self) -> None:
        """Take one step: until the next switch, or the end."""
        self.waits = False
        self._greenlet.switch()

    def pause(self, label: str, sends: object = None) -> None:
        """Let others go on. ``sends``: the parameters of the statement that comes next."""
        self.at = label
        self.sends = sends
        self._greenlet.parent.switch()

    def kept_moments(self) -> list[str]:
        """The moments that the process has taken from the clock and may use yet.

        They are in the locals of the package's functions, or in a row, a dict or a dataclass there;
        or in the statement that it is about to send.
        """
        moments = list(_moments_in(self.sends))
        frame = self._greenlet.gr_frame
        while frame is not None:
            if frame.f_globals["__name__"].startswith(OURS):
                for value in frame.f_locals.values():
                    moments.extend(_moments_in(value))
            frame = frame.f_back
        return moments

    def wait(self) -> None:
        """Pause until another process has taken a step.

        From one look to the next a loop that waits keeps nothing but the time when it gives up.
        """
        if self._learned_before is None:
            self._learned_before = len(self.learned)
        del self.learned[self._learned_before :]
        self.waits = True
        self.pause("waits")

    def die(self) -> None:
        """Never go on. The process's own clean-up, if it has any, gets no further."""
        self.outcome = self.outcome or "died"
        self._greenlet.throw()


def _moments_in(value: object, depth: int = 3) -> Iterator[str]:
    if isinstance(value, datetime):
        yield text_of(value)
    if depth == 0 or isinstance(value, type):
        return
    inside: Iterable[object] = ()
    if isinstance(value, dict):
        inside = value.values()
    elif isinstance(value, list | tuple):
        inside = value
    elif isinstance(value, Model):
        inside = vars(value).values()
    elif is_dataclass(value) and not isinstance(value, Run | Service):
        inside = [getattr(value, each.name) for each in fields(value)]
    for each in inside:
        yield from _moments_in(each, depth - 1)


@dataclass
class Run:
    """What happens on one path. ``facts``: what the actors note for the invariants.

    ``every_step_ticks``: a second passes at each step; else only before what people and the service
    do. ``quiet_calls``: calls of the service whose answer nothing in the scenario changes.
    """

    actors: Mapping[str, Callable[["Run"], str]]
    every_step_ticks: bool = True
    quiet_calls: frozenset[str] = frozenset({"profile"})
    clock: Clock = field(default_factory=Clock)
    facts: dict[str, Any] = field(default_factory=lambda: defaultdict(list))
    running: Process | None = None
    processes: list[Process] = field(default_factory=list)
    died: list[str] = field(default_factory=list)
    story: list[str] = field(default_factory=list)
    drawn: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.service = Service(self.clock)

    def restart(self, beginning: "Saved") -> None:
        """Begin anew, from what was saved before the first step."""
        for process in self.processes:
            process.die()
        beginning.restore(self)
        self.died = []
        self.story = []
        self.drawn = Counter()
        self.processes = [
            Process(name, lambda actor=actor: actor(self)) for name, actor in self.actors.items()
        ]
        for process in self.processes:
            # To the first pause of each, before which an actor does nothing.
            self._go_on(process)

    # What the actors and the package do

    def pause(self, label: str, sends: object = None) -> None:
        """Let the other processes go on, if a process of the explorer runs."""
        if self.running is not None:
            self.running.pause(label, sends)

    def acts(self, label: str) -> None:
        """Pause before something that a person or the service does: it has a time of its own."""
        self.pause(label)
        if self.running is not None and not self.every_step_ticks:
            self.clock.seconds += 1

    def wait_for_others(self) -> None:
        """Pause until all other processes are over."""
        process = self.running
        while not all(each.is_over for each in self.processes if each is not process):
            process.wait()

    def note(self, learned: object) -> None:
        if self.running is not None:
            self.running.learned.append(str(learned))

    def take(self, number: int, *, dies: bool) -> None:
        """Let the process of that number take a step, or die."""
        process = self.processes[number]
        if dies:
            self.story.append(f"{process.name} DIES before: {process.at}")
            self.died.append(process.name)
            process.die()
            return
        self.story.append(f"{process.name}: {process.at}")
        if process.waits:
            # Everybody waits, and for a process that died.
            self.clock.to_next_minute()
        if self.every_step_ticks:
            self.clock.seconds += 1
        process.has_begun = True
        self._go_on(process)
        for other in self.processes:
            other.waits = other.waits and other is process
        if process.is_over:
            self.story.append(f"    {process.name} ends: {process.outcome}")
        if process.fault:
            self.story.append(process.fault)

    def _go_on(self, process: Process) -> None:
        self.running = process
        process.go_on()
        self.running = None


class Saved:
    """The rows, the clock, the service and the facts of a moment."""

    def __init__(self, run: Run) -> None:
        self._rows = sqlite3.connect(":memory:")
        connection.connection.backup(self._rows)
        self._rest = deepcopy((run.clock, run.service, run.facts))

    def restore(self, run: Run) -> None:
        self._rows.backup(connection.connection)
        run.clock, run.service, run.facts = deepcopy(self._rest)
