"""Time-stamps: every form of ISO 8601 that names a moment, read as UTC."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

# Every database stores these, and every time zone east or west can show them.
BEGINNING = datetime(1000, 1, 1, tzinfo=UTC)
NO_END = datetime(9999, 1, 1, tzinfo=UTC)
LONGEST = 64
DATE = r"(?:\d{4}-?\d{2}-?\d{2}|\d{4}-?W\d{2}-?\d|\d{4}-?\d{3})"
TIME = r"\d{2}(?::?\d{2}(?::?\d{2}(?:[.,]\d+)?)?)?"
ZONE = r"(?:Z|[+-]\d{2}(?::?\d{2})?)?"
MOMENT = re.compile(rf"(?P<date>{DATE})[T ](?P<time>{TIME})(?P<zone>{ZONE})", re.ASCII)
ORDINAL = re.compile(r"(?P<year>\d{4})-?(?P<day>\d{3})", re.ASCII)
# The leap second and the end of the day, as a clock with neither shows them.
TURN = re.compile(r"(?P<to_minute>\d{2}:?\d{2}:?)60|24(?P<midnight>(?::?00){0,2})(?:[.,]0+)?")


class NotAMoment(ValueError):
    """Not a date with a time of day in a form of ISO 8601."""


def parse_moment(text: str) -> datetime:
    """The moment that ``text`` names, aware and in UTC; one without a zone is UTC.

    Takes the extended and the basic form, week and ordinal dates, fractions of a second of any
    length (cut to microseconds), and other zones than UTC. Raises ``NotAMoment``.
    """
    found = MOMENT.fullmatch(text.upper()) if len(text) <= LONGEST else None
    if found is None:
        raise NotAMoment
    try:
        return _moment(found["date"], found["time"], found["zone"])
    except (ValueError, OverflowError):
        raise NotAMoment from None


def bounded(moment: datetime) -> datetime:
    """``moment`` in UTC (one without a zone is UTC), between ``BEGINNING`` and ``NO_END``.

    Never raises. Services write the last second of the calendar for "never": no time zone could
    show it, and half of them not even convert it.
    """
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    try:
        return min(max(aware.astimezone(UTC), BEGINNING), NO_END)
    except OverflowError:
        return BEGINNING if aware.year < BEGINNING.year else NO_END


def has_no_end(moment: datetime) -> bool:
    """Whether ``moment`` stands for "never"."""
    return moment >= NO_END


def _moment(date: str, time: str, zone: str) -> datetime:
    time, later = _turned(time)
    return bounded(datetime.fromisoformat(f"{_calendar(date)}T{time}{zone}") + later)


def _calendar(date: str) -> str:
    """An ordinal date as one that Python reads; any other as it is."""
    ordinal = ORDINAL.fullmatch(date)
    if ordinal is None:
        return date
    first = datetime.fromisoformat(f"{ordinal['year']}-01-01")
    day = first + timedelta(days=int(ordinal["day"]) - 1)
    if day.year != first.year:
        raise NotAMoment
    return day.date().isoformat()


def _turned(time: str) -> tuple[str, timedelta]:
    """``23:59:60`` and ``24:00`` as a time that Python reads, and what is to be added to it."""
    turn = TURN.match(time)
    if turn is None:
        return time, timedelta()
    if turn["to_minute"]:
        return f"{turn['to_minute']}59{time[turn.end() :]}", timedelta(seconds=1)
    if turn.end() != len(time):
        raise NotAMoment
    return f"00{turn['midnight']}", timedelta(days=1)
