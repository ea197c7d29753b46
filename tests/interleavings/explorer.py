"""Follow every order of the steps of a few processes, with a crash possible at each step.

A process is a greenlet that runs the package's own functions; ``control`` says where it pauses.
Nothing is left to chance, and time passes only where somebody acts: so the same choices from the
same beginning lead to the same state. To follow another branch, the explorer begins anew and makes
the same choices up to it. A state that was seen before is not followed. A step that was taken
before from the same rows, by a process that had learned the same, does the same: so it is looked
up, and not taken again.
"""

import re
import sqlite3
import traceback
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import blake2b
from time import process_time
from typing import Any, NamedTuple

from django.db import connection
from greenlet import greenlet

from django_identity import exceptions
from tests.interleavings.world import Clock, Service

TABLES = (
    "auth_user",
    "django_identity_linkedidentity",
    "django_identity_tokengrant",
    "django_identity_storedclaim",
    "django_identity_webhookevent",
    "django_identity_erasurereceipt",
)
Path = tuple["Choice", ...]
Judge = Callable[["Run"], Iterable[str]]

#: Nothing in the package compares these moments of a row that it reads.
UNREAD = ("created_at", "date_joined", "requested_at", "handled_at")
MOMENT = re.compile(r"(\d{4}-\d\d-\d\d \d\d:\d\d):(\d\d)(?:\.\d+)?")

FRESH = "has not begun"
READY = "is ready"
WAITS = "waits for others"
OVER = "is over"


class Process:
    """One actor. ``at``: what it does next. ``learned``: all that it has read so far."""

    def __init__(self, name: str, work: Callable[[], str]) -> None:
        self.name = name
        self.stage = FRESH
        self.at = ""
        self.learned: list[str] = []
        self.outcome = ""
        self.fault = ""
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
        self.stage = OVER

    def go_on(self) -> None:
        """Take one step: until the next switch, or the end."""
        self._greenlet.switch()

    def pause(self, label: str, stage: str = READY) -> None:
        """Let others go on."""
        self.at = label
        self.stage = stage
        self._greenlet.parent.switch()

    def wait(self) -> None:
        """Pause until another process has taken a step.

        From one look to the next a loop that waits keeps nothing but the time when it gives up.
        """
        if self._learned_before is None:
            self._learned_before = len(self.learned)
        del self.learned[self._learned_before :]
        self.pause("waits", WAITS)

    def die(self) -> None:
        """Never go on. The process's own clean-up, if it has any, gets no further."""
        self.stage = OVER
        self._greenlet.throw()


@dataclass
class Run:
    """What happens on one path. ``facts``: what the actors note for the invariants.

    ``quiet``: calls of the service whose answer nothing in the scenario changes.
    """

    actors: Mapping[str, Callable[["Run"], str]]
    quiet: set[str] = field(default_factory=set)
    clock: Clock = field(default_factory=Clock)
    facts: dict[str, Any] = field(default_factory=lambda: defaultdict(list))
    running: Process | None = None
    processes: list[Process] = field(default_factory=list)
    died: list[str] = field(default_factory=list)
    story: list[str] = field(default_factory=list)
    #: Process -> how often it has asked for chance.
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
            Process(name, lambda actor=actor: actor(self))
            for name, actor in self.actors.items()
        ]
        for process in self.processes:
            # To the first pause of each, before which an actor does nothing.
            self._go_on(process)
            process.stage = FRESH

    # What the actors and the package do

    def pause(self, label: str) -> None:
        """Let the other processes go on, if a process of the explorer runs."""
        if self.running is not None:
            self.running.pause(label)

    def acts(self, label: str) -> None:
        """Pause before something that a person or the service does: it has a time of its own."""
        self.pause(label)
        self.clock.seconds += 1

    def now(self) -> datetime:
        """The site's time. A process may keep it, so it has learned it."""
        now = self.clock.now()
        self.note(now)
        return now

    def note(self, learned: object) -> None:
        if self.running is not None:
            self.running.learned.append(str(learned))

    # What the explorer does

    def take(self, choice: "Choice") -> None:
        """Let a process take a step, or die."""
        process = self.processes[choice.number]
        if choice.dies:
            self.story.append(f"{process.name} DIES before: {process.at}")
            self.died.append(process.name)
            process.die()
            return
        self.story.append(f"{process.name}: {process.at}")
        if process.stage == WAITS:
            # Everybody waits, and for a process that died.
            self.clock.to_next_minute()
        for other in self.processes:
            if other.stage == WAITS:
                other.stage = READY
        self._go_on(process)
        if process.stage == OVER:
            self.story.append(f"    {process.name} ends: {process.outcome}")
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


class Local(NamedTuple):
    """A process in a state. How it ended makes no difference: what it did is in the rows."""

    stage: str
    #: What it does next, and what it has learned.
    learned: str = ""

    @classmethod
    def of(cls, process: Process) -> "Local":
        if process.stage == OVER:
            return cls(OVER, process.fault)
        return cls(process.stage, f"{process.at} {process.learned}")


class Choice(NamedTuple):
    """The next step: the process of that number goes on, or ``dies``."""

    number: int
    dies: bool = False


class State(NamedTuple):
    """``shared``: what all may read: rows, service, clock, and the actors' facts.

    ``deaths``: how many processes may die yet.
    """

    shared: str
    locals: tuple[Local, ...]
    deaths: int

    @classmethod
    def of(cls, run: Run, *, deaths: int) -> "State":
        cursor = connection.connection.cursor()
        rows = [
            compared(cursor, row)
            for table in TABLES
            for row in cursor.execute(f"SELECT * FROM {table} ORDER BY id")
        ]
        shared = f"{run.clock.text()} {rows} {run.service} {run.facts}"
        return cls(shared, tuple(map(Local.of, run.processes)), deaths)

    @property
    def key(self) -> bytes:
        """Equal for two states that differ in nothing but the seconds between two moments.

        Every time-out of the package is a number of minutes, and a path takes less than one. So two
        moments compare as their minutes do, and else as their order; and of those outside the ten
        minutes in which all happens the seconds do not count.
        """
        here = self.shared[: len("2026-11-01 12:1")]
        text = MOMENT.sub(
            lambda each: each[0] if each[0].startswith(here) else each[1], str(self)
        )
        seconds = sorted({each[2] for each in MOMENT.finditer(text)})
        ranked = MOMENT.sub(lambda each: f"{each[1]} {seconds.index(each[2])}", text)
        return blake2b(ranked.encode()).digest()

    def choices(self) -> Iterator[Choice]:
        """What can happen next: a step of each process, or the end of one that has begun."""
        alive = [
            number for number, each in enumerate(self.locals) if each.stage != OVER
        ]
        ready = [number for number in alive if self.locals[number].stage != WAITS]
        for number in ready or alive:
            yield Choice(number)
        if self.deaths:
            for number in alive:
                if self.locals[number].stage != FRESH:
                    yield Choice(number, dies=True)

    def after(self, number: int, local: Local, shared: str) -> "State":
        """The state after a step of one process. It wakes those that wait."""
        others = [
            Local(READY, each.learned) if each.stage == WAITS else each
            for each in self.locals
        ]
        others[number] = local
        return State(shared, tuple(others), self.deaths)

    def after_death(self, number: int) -> "State":
        others = list(self.locals)
        others[number] = Local(OVER)
        return State(self.shared, tuple(others), self.deaths - 1)


def compared(cursor: sqlite3.Cursor, row: Iterable[Any]) -> list[str]:
    """The values of a row, but for the moments that nothing compares."""
    names = [column[0] for column in cursor.description]
    pairs = zip(names, row, strict=True)
    return [str(value) for name, value in pairs if name not in UNREAD]


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
    """Follows all paths of ``run`` from where it is. ``endings``: how it goes on after each.

    ``judge`` tells what is wrong then.
    """

    def __init__(
        self, run: Run, *, endings: Iterable[Judge], judge: Judge, deaths: int
    ) -> None:
        self.run = run
        self.endings = endings
        self.judge = judge
        self.deaths = deaths
        self.found = Found()
        self._beginning = Saved(run)
        self._path: Path | None = None
        #: What a step did: from what, by whom -> what the process is then, and what all see.
        self._taken: dict[tuple[str, int, Local], tuple[Local, str]] = {}
        self._judged: set[bytes] = set()

    def explore(self, *, seconds: float, until: str = "") -> Found:
        """Follow all paths, or as many as there is time for: seconds of one core.

        ``until``: the invariant with whose first violation the search ends.
        """
        began = process_time()
        self._go_to(())
        first = State.of(self.run, deaths=self.deaths)
        seen = {first.key}
        pending: list[tuple[State, Path]] = [(first, ())]
        while pending and process_time() < began + seconds:
            state, path = pending.pop()
            choices = list(state.choices())
            if not choices:
                self._judge(path, state)
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
        return state.after(number, *self._taken[step])

    def _go_to(self, path: Path) -> None:
        """Bring the run to the end of ``path``: onwards if it is on it, else from the beginning."""
        done = self._path
        if done is None or path[: len(done)] != done:
            self.run.restart(self._beginning)
            done = ()
        for choice in path[len(done) :]:
            self.run.take(choice)
        self._path = path

    def _judge(self, path: Path, state: State) -> None:
        """Note what is wrong at this end, however it goes on. Ends that have become one are one."""
        self.found.ends += 1
        self._go_to(path)
        self._path = None
        end = Saved(self.run)
        for ending in self.endings:
            end.restore(self.run)
            self._note(ending, ending)
            now = State.of(self.run, deaths=state.deaths).key
            if now not in self._judged:
                self._judged.add(now)
                self._note(self.judge, ending)

    def _note(self, judge: Judge, ending: Judge) -> None:
        try:
            wrongs = list(judge(self.run))
        except Exception:  # noqa: BLE001  whatever it is, it is told
            wrongs = [traceback.format_exc(limit=-4)]
        story = [*self.run.story, f"Then: {ending.__doc__}"]
        for wrong in wrongs:
            shortest = self.found.stories.get(wrong, story)
            self.found.stories[wrong] = min(shortest, story, key=len)
