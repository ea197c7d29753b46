"""The list of ordered faults: which requests, how, and how often.

The list lives in the process. ``fault_injection`` applies the faults.
"""

import itertools
import threading
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum


class FaultKind(StrEnum):
    """What happens to a request."""

    DELAY = "delay"
    SLOW = "slow"
    STATUS = "status"
    MALFORMED = "malformed"
    DROP = "drop"
    DROP_MIDWAY = "drop_midway"
    RATE_LIMIT = "rate_limit"


class FaultMoment(StrEnum):
    """Whether the fault strikes before or after the service has acted on the request."""

    BEFORE = "before"
    AFTER = "after"


@dataclass(frozen=True, slots=True)
class Fault:
    """One ordered fault.

    It applies to a request if all of ``endpoint``, ``path`` and ``method`` that are not empty
    match. If all three are empty, it applies to every request.
    """

    kind: FaultKind
    endpoint: str = ""
    path: str = ""
    method: str = ""
    times: int | None = 1
    moment: FaultMoment = FaultMoment.BEFORE
    seconds: float = 0.0
    status: int = 500
    body: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    retry_after: int = 1
    id: int = 0

    def matches(self, *, endpoint: str, path: str, method: str) -> bool:
        """Return whether this fault applies to a request."""
        return (
            self.endpoint in ("", endpoint)
            and path.startswith(self.path)
            and self.method in ("", method)
        )


_lock = threading.Lock()
_numbers = itertools.count(1)
_ordered: list[Fault] = []


def order(fault: Fault) -> Fault:
    """Add ``fault`` to the list and return it with its number."""
    with _lock:
        numbered = replace(fault, id=next(_numbers))
        _ordered.append(numbered)
        return numbered


def take(*, endpoint: str, path: str, method: str) -> Fault | None:
    """Return the oldest fault that applies to this request, and count one use."""
    with _lock:
        for position, fault in enumerate(_ordered):
            if fault.matches(endpoint=endpoint, path=path, method=method):
                if fault.times is not None and fault.times <= 1:
                    del _ordered[position]
                elif fault.times is not None:
                    _ordered[position] = replace(fault, times=fault.times - 1)
                return fault
    return None


def ordered() -> list[dict[str, object]]:
    """Return the pending faults, as the control API shows them."""
    with _lock:
        return [asdict(fault) for fault in _ordered]


def cancel(fault_id: int | None = None) -> None:
    """Forget one fault, or all of them."""
    with _lock:
        _ordered[:] = [each for each in _ordered if fault_id is not None and each.id != fault_id]
