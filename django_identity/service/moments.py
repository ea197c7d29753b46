"""Parse time-stamps in the forms of ISO 8601 that Python reads."""

from datetime import UTC, datetime

# Every database can store these times, and every time zone can show them.
BEGINNING = datetime(1000, 1, 1, tzinfo=UTC)
NO_END = datetime(9999, 1, 1, tzinfo=UTC)


class NotAMoment(ValueError):
    """Not a date with a time of day in a form of ISO 8601."""


def parse_moment(text: str, *, takes_days: bool = False) -> datetime:
    """Parse ``text`` into an aware datetime in UTC. Without a zone it is UTC.

    ``takes_days``: a date alone is its first moment. Raises ``NotAMoment``.
    """
    given = text.upper()
    if not (takes_days or "T" in given or " " in given):
        raise NotAMoment("not a time")
    try:
        return bounded(datetime.fromisoformat(given))
    except ValueError:
        raise NotAMoment("not a time") from None


def bounded(moment: datetime) -> datetime:
    """Return ``moment`` in UTC, limited to the range from ``BEGINNING`` to ``NO_END``.

    It never raises. Some services write the last second of the calendar for "never", which many
    time zones cannot represent. Without a zone ``moment`` is UTC.
    """
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    try:
        return min(max(aware.astimezone(UTC), BEGINNING), NO_END)
    except OverflowError:
        return BEGINNING if aware.year < BEGINNING.year else NO_END
