"""Parse time-stamps in the forms of ISO 8601 that Python reads, and leap seconds."""

import re
from datetime import UTC, datetime, timedelta

# Every database can store these times, and every time zone can show them.
BEGINNING = datetime(1000, 1, 1, tzinfo=UTC)
NO_END = datetime(9999, 1, 1, tzinfo=UTC)
# RFC 3339 §5.6: a minute may have a second 60. Python has no time for it.
SECOND_60 = re.compile(r"([T ][0-9]{2}:?[0-9]{2}:?)60(?![0-9])")
# ISO 8601: the end of a day is its hour 24.
HOUR_24 = re.compile(r"([T ])24((?::?00){0,2})(?:[.,]0+)?(?=Z|[+-]|$)")


class NotAMoment(ValueError):
    """Not a date with a time of day in a form of ISO 8601."""


def parse_moment(text: str, *, takes_days: bool = False) -> datetime:
    """Parse ``text`` into an aware datetime in UTC. Without a zone it is UTC.

    A second 60 is the first one of the next minute, as in POSIX, and an hour 24 the first one of
    the next day. ``takes_days``: a date alone is its first moment. Raises ``NotAMoment``.
    """
    text = text.upper()
    if not (takes_days or "T" in text or " " in text):
        raise NotAMoment("not a time")
    # A refused time of an event is delivered again for ever.
    text, leap_seconds = SECOND_60.subn(r"\g<1>59", text, count=1)
    text, days = HOUR_24.subn(r"\g<1>00\g<2>", text, count=1)
    # Newer Pythons read some more forms of it.
    if "T24" in text or " 24" in text:
        raise NotAMoment("not a time")
    try:
        moment = bounded(datetime.fromisoformat(text))
    except ValueError:
        raise NotAMoment("not a time") from None
    # Twice bounded: at the end of the calendar a sum would raise.
    return bounded(moment + timedelta(days=days, seconds=leap_seconds))


def bounded(moment: datetime) -> datetime:
    """Return ``moment`` in UTC, limited to the range from ``BEGINNING`` to ``NO_END``.

    It never raises. Some services write the last second of the calendar for "never", which many
    time zones cannot represent. A naive ``moment`` is UTC.
    """
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    try:
        moment = moment.astimezone(UTC)
    except OverflowError:
        # At an end of the calendar the zone's offset leads beyond it.
        moment = moment.replace(tzinfo=UTC)
    return min(max(moment, BEGINNING), NO_END)
