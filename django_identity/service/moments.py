"""Parse time-stamps in every form of ISO 8601 with a time of day."""

import re
from datetime import UTC, datetime, timedelta

# Every database can store these times, and every time zone can show them.
BEGINNING = datetime(1000, 1, 1, tzinfo=UTC)
NO_END = datetime(9999, 1, 1, tzinfo=UTC)
LONGEST = 64
DATE = r"(?:\d{4}-?\d{2}-?\d{2}|\d{4}-?W\d{2}-?\d|\d{4}-?\d{3})"
TIME = r"\d{2}(?::?\d{2}(?::?\d{2}(?:[.,]\d+)?)?)?"
ZONE = r"(?:Z|[+-]\d{2}(?::?\d{2})?)?"
MOMENT = re.compile(rf"(?P<date>{DATE})[T ](?P<time>{TIME})(?P<zone>{ZONE})", re.ASCII)
DAY = re.compile(DATE, re.ASCII)
ORDINAL = re.compile(r"(?P<year>\d{4})-?(?P<day>\d{3})", re.ASCII)
# A leap second (``23:59:60``) and the end of the day (``24:00``).
TURN = re.compile(r"(?P<to_minute>\d{2}:?\d{2}:?)60|24(?P<midnight>(?::?00){0,2})(?:[.,]0+)?")


class NotAMoment(ValueError):
    """Not a date with a time of day in a form of ISO 8601."""


def parse_moment(text: str, *, takes_days: bool = False) -> datetime:
    """Parse ``text`` into an aware datetime in UTC. Without a zone it is UTC.

    ``takes_days``: a date alone is its first moment.

    Accepts the extended and the basic form, week and ordinal dates, fractions of a second of any
    length (cut to microseconds) and all zones. Raises ``NotAMoment``.
    """
    is_day = takes_days and len(text) <= LONGEST and DAY.fullmatch(text)
    given = f"{text}T00:00" if is_day else text
    found = MOMENT.fullmatch(given.upper()) if len(text) <= LONGEST else None
    if found is None:
        raise NotAMoment("not a time")
    try:
        time, later = _turned(found["time"])
        moment = datetime.fromisoformat(f"{_calendar(found['date'])}T{time}{found['zone']}")
        return bounded(moment + later)
    except (ValueError, OverflowError):
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


def has_no_end(moment: datetime) -> bool:
    """Whether ``moment`` means "never"."""
    return moment >= NO_END


def _calendar(date: str) -> str:
    """Convert an ordinal date into a form that Python parses. Other dates are unchanged."""
    ordinal = ORDINAL.fullmatch(date)
    if ordinal is None:
        return date
    first = datetime.fromisoformat(f"{ordinal['year']}-01-01")
    day = first + timedelta(days=int(ordinal["day"]) - 1)
    if day.year != first.year:
        raise NotAMoment
    return day.date().isoformat()


def _turned(time: str) -> tuple[str, timedelta]:
    """Convert ``23:59:60`` and ``24:00`` into a time that Python parses, and a time to add."""
    turn = TURN.match(time)
    if turn is None:
        return time, timedelta()
    if turn["to_minute"]:
        return f"{turn['to_minute']}59{time[turn.end() :]}", timedelta(seconds=1)
    if turn.end() != len(time):
        raise NotAMoment
    return f"00{turn['midnight']}", timedelta(days=1)
