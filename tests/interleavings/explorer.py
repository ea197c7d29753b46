"""Follow every order of the steps of a few processes, with a crash possible at each step.

A process is a greenlet that runs the package's own functions; ``control`` says where it pauses.
Nothing is left to chance, and time passes only where somebody acts: so the same choices from the
same beginning lead to the same state. To follow another branch, the explorer begins anew and makes
the same choices up to it. A state that was seen before is not followed. A step that was taken
before from the same rows, by a process that had learned the same, does the same: so it is looked
up, and not taken again.
"""

import random
import re
import sqlite3
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from functools import partial
from hashlib import blake2b
from time import process_time
from typing import Any, NamedTuple

from django.db import connection
from greenlet import getcurrent, greenlet

from django_identity import exceptions
from tests.interleavings.world import World

#: All that processes share. The rows of a started sign-in or an entered code are their process's.
TABLES = (
    "auth_user",
    "django_identity_linkedidentity",
    "django_identity_tokengrant",
    "django_identity_storedclaim",
    "django_identity_webhookevent",
    "django_identity_erasurereceipt",
)
#: Nothing in the package compares these moments of a row that it reads.
UNREAD = ("created_at", "date_joined", "requested_at", "handled_at")
MOMENT = re.compile(r"(\d{4}-\d\d-\d\d \d\d:\d\d):(\d\d)")

Actor = Callable[[World], str]
Ending = Callable[[World], Iterable[str]]


# What runs


class Local(NamedTuple):
    """What one process knows: what it does next, and all that it has done and read so far."""

    at: str
    learned: str = ""


#: How a process ended makes no difference: what it did is in the rows.
OVER = Local("is over")


class Process(greenlet):
    """One actor."""

    def __init__(self, name: str, work: Callable[[], str]) -> None:
        super().__init__(work)
        self.name = name
        self.learned: list[str] = []
        #: Its own, so that it draws the same whatever the others do.
        self.chance = random.Random(name)
        # To its first pause, before which an actor does nothing.
        self.at = self.switch()

    @property
    def local(self) -> Local:
        if self.dead:
            return OVER
        return Local(self.at, " ".join(self.learned))


def pause(label: str) -> None:
    """Let the other processes go on."""
    process = getcurrent()
    if isinstance(process, Process):
        process.parent.switch(label)


def learn(what: object) -> None:
    """Note what the running process has read, which its next steps may rest on."""
    process = getcurrent()
    if isinstance(process, Process):
        process.learned.append(str(what))


# What is compared


class Choice(NamedTuple):
    """The next step: the process of that number goes on, or ``dies``."""

    number: int
    dies: bool = False


Path = tuple[Choice, ...]


class State(NamedTuple):
    """All that the future depends on.

    ``shared``: what all may read. ``know``: what each process knows. ``deaths``: how many of them
    may die yet.
    """

    shared: str
    know: tuple[Local, ...]
    deaths: int

    @property
    def key(self) -> bytes:
        """Equal for two states that differ in nothing but the seconds between two moments.

        Every time-out of the package is a number of minutes, and a path takes less than one, but
        where somebody waits. So two moments compare as their minutes do, and else as their order.
        """
        text = str(self)
        seconds = sorted({each[2] for each in MOMENT.finditer(text)})
        ranked = MOMENT.sub(lambda each: f"{each[1]} {seconds.index(each[2])}", text)
        return blake2b(ranked.encode(), digest_size=16).digest()

    def choices(self) -> Iterator[Choice]:
        """What can happen next: a step of each process, or the end of one that has begun."""
        for number, local in enumerate(self.know):
            if local != OVER:
                yield Choice(number)
                if self.deaths and local.learned:
                    yield Choice(number, dies=True)


def compared(cursor: sqlite3.Cursor, row: Iterable[Any]) -> list[str]:
    """The values of a row, but for the moments that nothing compares."""
    columns = zip(cursor.description, row, strict=True)
    return [str(value) for (name, *_), value in columns if name not in UNREAD]


def shared(world: World) -> str:
    """What all processes may read."""
    cursor = connection.connection.cursor()
    rows = [
        compared(cursor, row)
        for table in TABLES
        for row in cursor.execute(f"SELECT * FROM {table} ORDER BY id")
    ]
    return f"{world.now} {rows} {world}"


class Saved:
    """The rows and the world of a moment."""

    def __init__(self, world: World) -> None:
        self._rows = sqlite3.connect(":memory:")
        connection.connection.backup(self._rows)
        self._world = deepcopy(world)

    def restored(self) -> World:
        self._rows.backup(connection.connection)
        return deepcopy(self._world)


# What is followed


@dataclass
class Found:
    """What was met. ``stories``: what does not hold -> the shortest path to it, as a story."""

    states: set[bytes] = field(default_factory=set)
    transitions: int = 0
    ends: int = 0
    is_whole: bool = True
    seconds: float = 0.0
    stories: dict[str, list[str]] = field(default_factory=dict)


@dataclass
class Explorer:
    """Follows all paths of the actors. ``endings`` say how it goes on, and what does not hold then.

    It gives up after so many ``seconds`` of one core, or when ``until`` does not hold.
    """

    world: World
    actors: Mapping[str, Actor]
    endings: Iterable[Ending]
    seconds: float
    until: str = ""
    began: float = field(default_factory=process_time)
    found: Found = field(default_factory=Found)
    #: Where the processes are now.
    path: Path | None = None
    processes: list[Process] = field(default_factory=list)
    story: list[str] = field(default_factory=list)
    #: What a step did: from what, by whom -> what all see then, and what the process knows.
    taken: dict[tuple[str, int, Local], tuple[str, Local]] = field(default_factory=dict)

    def explore(self, *, deaths: int) -> Found:
        """Follow all paths, or as many as there is time for."""
        self.beginning = Saved(self.world)
        self._go_to(())
        knows = tuple(process.local for process in self.processes)
        self._follow(State(shared(self.world), knows, deaths), ())
        self.found.seconds = process_time() - self.began
        return self.found

    def _follow(self, state: State, path: Path) -> None:
        """Follow each choice from ``state``, to which ``path`` leads, if it is new."""
        if state.key in self.found.states:
            return
        is_late = process_time() > self.began + self.seconds
        if is_late or self.until in self.found.stories:
            self.found.is_whole = False
            return
        self.found.states.add(state.key)
        choices = list(state.choices())
        for choice in choices:
            self.found.transitions += 1
            self._follow(self._after(state, path, choice), (*path, choice))
        if not choices:
            self._judge(path)

    def _after(self, state: State, path: Path, choice: Choice) -> State:
        """The state after a choice. What somebody knows who takes no step stays as it is."""
        number = choice.number
        know = list(state.know)
        if choice.dies:
            know[number] = OVER
            return State(state.shared, tuple(know), state.deaths - 1)

        step = (state.shared, number, know[number])
        if step not in self.taken:
            self._go_to((*path, choice))
            self.taken[step] = (shared(self.world), self.processes[number].local)
        seen, know[number] = self.taken[step]
        return State(seen, tuple(know), state.deaths)

    def _go_to(self, path: Path) -> None:
        """Bring the processes to the end of ``path``: onwards, or from the beginning."""
        done = self.path
        if done is None or path[: len(done)] != done:
            done = ()
            for process in self.processes:
                process.throw()
            self.story = []
            self.world = self.beginning.restored()
            self.processes = [
                Process(name, partial(actor, self.world))
                for name, actor in self.actors.items()
            ]
        for choice in path[len(done) :]:
            self._take(choice)
        self.path = path

    def _take(self, choice: Choice) -> None:
        """Let a process go on until its next pause or its end, or let it die."""
        process = self.processes[choice.number]
        if choice.dies:
            self.story.append(f"{process.name} DIES before: {process.at}")
            self.world.died.append(process.name)
            process.throw()
            return
        self.story.append(f"{process.name}: {process.at}")
        process.learned.append(process.at)
        try:
            process.at = process.switch()
        except exceptions.IdentityError as refused:
            process.at = f"refused: {refused.code}"
        except Exception:  # noqa: BLE001  whatever it is, an invariant tells it
            process.at = traceback.format_exc(limit=-4)
            self.world.failed.append(process.name)
        if process.dead:
            self.story.append(f"    {process.name} ends: {process.at}")

    def _judge(self, path: Path) -> None:
        """Note what does not hold at this end, however it goes on."""
        self.found.ends += 1
        self._go_to(path)
        self.path = None
        end = Saved(self.world)
        for ending in self.endings:
            self.world = end.restored()
            try:
                broken = list(ending(self.world))
            except Exception:  # noqa: BLE001  whatever it is, it is told
                broken = [traceback.format_exc(limit=-4)]
            story = [*self.story, f"Then: {ending.__doc__}"]
            for sentence in broken:
                known = self.found.stories.get(sentence, story)
                self.found.stories[sentence] = min(known, story, key=len)
