"""Real Celery workers, killed without a warning."""

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from tests.concurrency import ROOT

COMMAND = [
    sys.executable, "-m", "celery", "--quiet", "-A", "tests.integration.worker_app", "worker",
    "--loglevel", "INFO", "--without-gossip", "--without-mingle", "--without-heartbeat",
]  # fmt: skip
# Without any sign of life: a busy machine may take minutes over what an idle one does in seconds.
PATIENCE = 240.0
LOG_END = 6000


@dataclass
class Workers:
    """``size`` workers, each with ``pool``. ``killed``: process number -> when it was."""

    environment: dict[str, str] = field(repr=False)
    log: Path
    size: int = 2
    pool: tuple[str, ...] = ("--pool", "prefork", "--concurrency", "2")
    killed: dict[int, float] = field(default_factory=dict)
    _mains: list[subprocess.Popen[bytes]] = field(default_factory=list)
    _names: Iterator[int] = field(default_factory=count, repr=False)

    def start(self) -> None:
        """Bring the number of workers up to ``size``; what they say goes to ``log``."""
        # Celery ends a worker one of whose processes was killed while they started.
        self._mains = [main for main in self._mains if main.poll() is None]
        while len(self._mains) < self.size:
            # Of its own: RabbitMQ keeps the queue of a name for the connection that declared it.
            name = f"worker-{os.getpid()}-{next(self._names)}@%h"
            with self.log.open("ab") as log:
                # A group of its own, so that a machine that dies takes its pool along.
                main = subprocess.Popen(
                    [*COMMAND, *self.pool, "--hostname", name],
                    cwd=ROOT,
                    env=self.environment,
                    start_new_session=True,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                )
            self._mains.append(main)

    def kill_a_process(self) -> None:
        """SIGKILL for one process of a pool, by chance; for none if it has none at the moment."""
        alive = children_of(random.choice(self._mains).pid)
        # Until its worker has taken note of its end, a killed one is still listed.
        if alive and (process := random.choice(alive)) not in self.killed:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
                self.killed[process] = time.monotonic()

    def kill_a_worker(self) -> None:
        """SIGKILL for a worker and its pool at once, as when a machine dies."""
        main = self._mains.pop(random.randrange(len(self._mains)))
        # Stopped, it makes no process that would be missed.
        main.send_signal(signal.SIGSTOP)
        dying = [main.pid, *children_of(main.pid)]
        with contextlib.suppress(ProcessLookupError):  # it has ended by itself
            os.killpg(main.pid, signal.SIGKILL)
        self.killed = dict.fromkeys(dying, time.monotonic()) | self.killed
        main.wait()

    def are_alive(self) -> bool:
        """Whether none of them has ended by itself."""
        return all(main.poll() is None for main in self._mains)

    def stop(self) -> None:
        """Let them finish what they are at."""
        for main in self._mains:
            main.terminate()
        for main in self._mains:
            try:
                main.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                raise AssertionError(
                    f"a worker does not end: {self.log_end()}"
                ) from None
        self._mains.clear()

    def log_end(self) -> str:
        return self.log.read_text("utf-8", "replace")[-LOG_END:]

    def end(self) -> None:
        """Whatever happened: leave none behind."""
        while self._mains:
            self.kill_a_worker()


def children_of(process: int) -> list[int]:
    try:
        listed = Path(f"/proc/{process}/task/{process}/children").read_text("ascii")
    except OSError:
        return []
    return [int(number) for number in listed.split()]
