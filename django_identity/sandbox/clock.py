"""The sandbox's clock: real time plus an offset that the control API moves.

All expiries and time-stamps of the service use it: codes, tokens, credentials, claims, keys. Only
browser sessions of the sandbox's own pages use real time. The offset is zero at each start.
"""

from datetime import UTC, datetime, timedelta

from django_identity.sandbox.errors import Invalid

EARLIEST = datetime(1970, 1, 1, tzinfo=UTC)
LATEST = datetime(9000, 1, 1, tzinfo=UTC)
_offset = timedelta()


def now() -> datetime:
    """Return the sandbox's current time, in UTC."""
    return datetime.now(UTC) + _offset


def offset() -> timedelta:
    """Return how far the sandbox is ahead of real time (negative: behind)."""
    return _offset


def differ(seconds: float) -> None:
    """Let the clock be ahead of real time by ``seconds``; behind by a negative number.

    Raises:
        Invalid: the clock would get out of the calendar, with everything that expires by it.
    """
    global _offset
    try:
        moved = timedelta(seconds=seconds)
        is_usable = EARLIEST < datetime.now(UTC) + moved < LATEST
    except OverflowError:
        is_usable = False
    if not is_usable:
        raise Invalid("The clock would get out of the calendar.")
    _offset = moved


def advance(seconds: float) -> None:
    """Move the clock by ``seconds``; a negative number moves it back. Raises as ``differ``."""
    try:
        differ(_offset.total_seconds() + seconds)
    except OverflowError as error:  # a whole number that is no float
        raise Invalid("The clock would get out of the calendar.") from error


def set_to(moment: datetime) -> None:
    """Set the clock to ``moment`` (aware), from where it continues."""
    differ((moment - datetime.now(UTC)).total_seconds())


def timestamp_if_any(moment: datetime | None) -> str | None:
    """Return the timestamp of ``moment``, or None if there is none."""
    if moment is None:
        return None
    return timestamp(moment)


def timestamp(moment: datetime) -> str:
    """Return ``moment`` as the ISO 8601 UTC timestamp that the service's answers carry."""
    return moment.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
