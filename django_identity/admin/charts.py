"""Small charts as SVG shapes, computed on the server."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.utils import formats
from django.utils.translation import get_language_bidi
from django.utils.translation import gettext as _

from django_identity.lifecycle.operators import DayCount
from django_identity.texts.operators import Words

WIDTH = 320
ROW_HEIGHT = 34
BAR_HEIGHT = 10
LABEL_BASELINE = 13
BAR_TOP = 18
COLUMNS_HEIGHT = 130
PLOT_TOP = 18
PLOT_BOTTOM = 110
GAP = 2


@dataclass(frozen=True, slots=True)
class Shape:
    """One bar with its place, label and value."""

    label: Words
    count: int
    x: float
    y: float
    width: float
    height: float

    @property
    def baseline(self) -> float:
        """The baseline of the label above a horizontal bar."""
        return self.y - BAR_TOP + LABEL_BASELINE


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart with its title and description. ``shapes`` are also the rows of its table.

    ``first`` and ``last`` are the ends of the time axis; horizontal bars have none.
    """

    slug: str
    title: Words
    description: Words
    height: int
    shapes: tuple[Shape, ...]
    note: Words
    first: str = ""
    last: str = ""
    width: int = WIDTH

    @property
    def total(self) -> int:
        return sum(shape.count for shape in self.shapes)

    @property
    def highest(self) -> int:
        return max((shape.count for shape in self.shapes), default=0)

    @property
    def is_mirrored(self) -> bool:
        """Whether the page, and so the chart, is read from right to left."""
        return get_language_bidi()

    @property
    def start(self) -> int:
        """The x coordinate where a line of text begins."""
        return self.width if self.is_mirrored else 0

    @property
    def end(self) -> int:
        return 0 if self.is_mirrored else self.width


def bars(
    slug: str, title: Words, counted: Sequence[tuple[Words, int]], *, note: Words = ""
) -> Chart:
    """A chart of horizontal bars, in the given order."""
    highest = max((count for _label, count in counted), default=0)
    shapes = []
    for number, (label, count) in enumerate(counted):
        top, width = number * ROW_HEIGHT + BAR_TOP, _scale(count, highest, WIDTH)
        shapes.append(Shape(label, count, 0, top, width, BAR_HEIGHT))
    description = "; ".join(f"{label}: {count}" for label, count in counted) or _("Nothing.")
    height = max(1, len(counted)) * ROW_HEIGHT
    return Chart(slug, title, description, height, tuple(shapes), note)


def columns(slug: str, title: Words, days: Sequence[DayCount], *, note: Words = "") -> Chart:
    """A chart of vertical bars, one for each day."""
    highest = max((day.count for day in days), default=0)
    step = WIDTH / max(1, len(days))
    shapes = []
    for number, day in enumerate(days):
        label, left = formats.date_format(day.day, "DATE_FORMAT"), round(number * step, 2)
        height = _scale(day.count, highest, PLOT_BOTTOM - PLOT_TOP)
        top, width = PLOT_BOTTOM - height, round(step - GAP, 2)
        shapes.append(Shape(label, day.count, left, top, width, height))
    total = sum(day.count for day in days)
    words = {"total": total, "days": len(days), "highest": highest}
    description = _("%(total)d in %(days)d days, %(highest)d on the highest day.") % words
    first, last = (_short(days[0]), _short(days[-1])) if days else ("-", "-")
    return Chart(slug, title, description, COLUMNS_HEIGHT, tuple(shapes), note, first, last)


def _scale(count: int, highest: int, length: int) -> float:
    """The length of a bar. A count above zero is always visible."""
    if not count or not highest:
        return 0
    return max(1.0, round(length * count / highest, 2))


def _short(day: DayCount) -> str:
    return str(formats.date_format(day.day, "MONTH_DAY_FORMAT"))
