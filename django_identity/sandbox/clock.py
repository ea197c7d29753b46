"""The sandbox's clock: real time plus an offset that the control API moves.

All expiries and time-stamps of the service use it: codes, tokens, credentials, claims, keys. Only
browser sessions of the sandbox's own pages use real time. The offset is zero at each start.
"""

from datetime import UTC, datetime, timedelta

_offset = timedelta()


def now() -> datetime:
    """Return the sandbox's current time, in UTC."""
    return datetime.now(UTC) + _offset


def offset() -> timedelta:
    """Return how far the sandbox is ahead of real time (negative: behind)."""
    return _offset


def advance(seconds: float) -> None:
    """Move the clock by ``seconds``; a negative number moves it back."""
    global _offset
    _offset += timedelta(seconds=seconds)


def set_to(moment: datetime | None) -> None:
    """Set the clock to ``moment`` (aware), from where it continues; None: real time."""
    global _offset
    _offset = moment - datetime.now(UTC) if moment else timedelta()


def timestamp(moment: datetime) -> str:
    """Return ``moment`` as the ISO 8601 UTC timestamp that the service's answers carry."""
    return moment.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
