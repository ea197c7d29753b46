"""What happened while workers were killed: what must not have been, and the evidence of it."""

import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TypeAlias

from django.db.models import Q
from django.utils import timezone

from django_identity.models import LinkedIdentity
from tests.integration.stand_in import Seen, StandIn
from tests.integration.workers import Workers

Repeat: TypeAlias = tuple[Seen, Seen]

MOST_SHOWN = 10


@dataclass(frozen=True)
class Story:
    """``due_since``: subject -> each moment from which on it was due. Times are monotonic."""

    service: StandIn
    workers: Workers
    due_since: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))

    def spent_twice(self) -> list[Repeat]:
        """Refresh tokens that were presented again although whoever had one was not killed."""
        return [pair for pair in self.repeats("token") if not self._was_killed_between(*pair)]

    def evidence(self) -> str:
        """For the message of an assertion. The tokens are the stand-in's: a number and a name."""
        wrong = self.spent_twice()
        is_left = ~Q(last_error="") | Q(refetch_due_at__lte=timezone.now())
        rows = LinkedIdentity.objects.filter(is_left).select_related("grant").order_by("pk")
        subjects = {_subject_of(first) for first, _ in wrong[:MOST_SHOWN]}
        subjects |= {row.subject for row in rows[:MOST_SHOWN]}
        calls = Counter(call.endpoint for call in self.service.seen)
        return "\n".join(
            [
                f"at {_clock(time.monotonic())}: calls {dict(calls)}, "
                f"{len(self.workers.killed)} killed, {len(wrong)} wrong, {len(rows)} rows left",
                *map(_described, rows[:MOST_SHOWN]),
                *(line for subject in sorted(subjects) for line in self._told(subject)),
                "the end of the workers' log:",
                self.workers.log_end(),
            ]
        )

    def repeats(self, endpoint: str) -> Iterator[Repeat]:
        """Each call with the next one about the same."""
        by_subject: dict[str, list[Seen]] = defaultdict(list)
        for call in self.service.seen:
            if call.endpoint == endpoint:
                by_subject[call.about].append(call)
        for calls in by_subject.values():
            yield from pairwise(calls)

    def _was_killed_between(self, first: Seen, second: Seen) -> bool:
        return self.workers.killed.get(first.process, second.at) < second.at

    def _told(self, subject: str) -> list[str]:
        """All that is known about one subject, in order."""
        known = {(at, "due") for at in self.due_since[subject]}
        killed = self.workers.killed
        for call in self.service.seen:
            if _subject_of(call) == subject:
                known.add((call.at, f"{call.endpoint} {call.about} by {call.process}"))
                if call.process in killed:
                    known.add((killed[call.process], f"{call.process} killed"))
        return [f"{subject} at {_clock(at)}: {what}" for at, what in sorted(known)]


def _subject_of(call: Seen) -> str:
    return call.about.split("-", 2)[2] if call.endpoint == "token" else call.about


def _clock(at: float) -> str:
    """The time of day, as in the workers' log."""
    seconds = time.time() - time.monotonic() + at
    return f"{time.strftime('%H:%M:%S', time.localtime(seconds))},{int(seconds % 1 * 1000):03}"


def _described(row: LinkedIdentity) -> str:
    now, grant = timezone.now(), row.grant
    moments = {
        "due": row.refetch_due_at, "lease": grant.lease_until, "retry": grant.retry_at,
    }  # fmt: skip
    seconds = {name: at and round((at - now).total_seconds(), 1) for name, at in moments.items()}
    return (
        f"{row.subject}: seconds until {seconds}, "
        f"failures {row.refetch_failures}, error {row.last_error!r}, "
        f"generation {grant.generation}, dead {grant.needs_reauthorization}"
    )
