"""The common base class of the lists: read-only, with queries of bounded cost."""

from __future__ import annotations

import calendar
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.models import LogEntry
from django.contrib.admin.views.main import ChangeList
from django.contrib.auth import get_permission_codename, get_user_model
from django.core.paginator import Paginator
from django.db.models import Model, QuerySet
from django.http import HttpRequest
from django.utils import formats, timezone
from django.utils.text import capfirst
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from django_identity.admin.wording import Words

if TYPE_CHECKING:  # generic for the type checker alone
    _Paginator = Paginator[Any]
    _ModelAdmin = admin.ModelAdmin[Any]
else:
    _Paginator, _ModelAdmin = Paginator, admin.ModelAdmin

MOST_LISTED = 10_000
PER_PAGE = 50


class BoundedPaginator(_Paginator):
    """Counts and lists at most ``MOST_LISTED`` rows. ``is_more``: there are more rows."""

    @cached_property
    def _found(self) -> int:
        rows = cast("QuerySet[Any]", self.object_list)
        return rows.order_by()[: MOST_LISTED + 1].count()

    @cached_property
    def count(self) -> int:
        return min(self._found, MOST_LISTED)

    @property
    def is_more(self) -> bool:
        return self._found > MOST_LISTED


@dataclass(frozen=True, slots=True)
class Choice:
    """A link of the date hierarchy; without ``link``, what is chosen already."""

    title: str
    link: str = ""


@dataclass(frozen=True, slots=True)
class Calendar:
    """The date hierarchy: one step back, and the steps that lead on."""

    back: Choice | None
    choices: tuple[Choice, ...]


class RecordChangeList(ChangeList):
    """A change list with a date hierarchy from the calendar and the first and last row.

    Django's own looks for the distinct years, months or days of every row in the table.
    """

    def calendar(self) -> Calendar:
        year, month, day = (self._picked(part) for part in ("year", "month", "day"))
        if not year:
            return Calendar(None, self._choices({"year": number} for number in self._years()))
        if not month:
            back = Choice(_("All dates"), self._address({}))
            return Calendar(
                back, self._choices({"year": year, "month": number} for number in range(1, 13))
            )
        picked = {"year": year, "month": month}
        if day:
            back = Choice(_title(picked), self._address(picked))
            return Calendar(back, (Choice(_title({**picked, "day": day})),))
        days = range(1, calendar.monthrange(year, month)[1] + 1)
        back = Choice(_title({"year": year}), self._address({"year": year}))
        return Calendar(back, self._choices({**picked, "day": number} for number in days))

    def _picked(self, part: str) -> int:
        return int(self.params.get(f"{self.date_hierarchy}__{part}", 0))

    def _choices(self, dates: Iterable[dict[str, int]]) -> tuple[Choice, ...]:
        return tuple(Choice(_title(picked), self._address(picked)) for picked in dates)

    def _address(self, picked: dict[str, int]) -> str:
        name = self.date_hierarchy
        return self.get_query_string(
            {f"{name}__{part}": number for part, number in picked.items()}, [f"{name}__"]
        )

    def _years(self) -> Iterator[int]:
        """From the oldest row's to this one; rows are written in the order of their keys."""
        oldest: datetime | None = (
            self.root_queryset.order_by("pk").values_list(str(self.date_hierarchy), flat=True)
        ).first()
        today = timezone.localdate()
        first = timezone.localtime(oldest).year if oldest else today.year
        yield from range(first, today.year + 1)


def _title(picked: dict[str, int]) -> str:
    moment = date(picked["year"], picked.get("month", 1), picked.get("day", 1))
    if "day" in picked:
        return capfirst(formats.date_format(moment, "MONTH_DAY_FORMAT"))
    if "month" in picked:
        return capfirst(formats.date_format(moment, "YEAR_MONTH_FORMAT"))
    return str(picked["year"])


class RecordAdmin(_ModelAdmin):
    """A read-only list with read-only pages."""

    paginator = BoundedPaginator
    show_full_result_count = False
    show_facets = admin.ShowFacets.NEVER
    list_per_page = PER_PAGE
    list_max_show_all = PER_PAGE
    ordering = ("-pk",)
    #: The label of the search field. ``search_help_text`` would hide the field's label from axe.
    search_words: Words = ""
    change_list_template = "admin/django_identity/change_list.html"

    class Media:
        css = {"all": ["django_identity/admin.css"]}

    def get_changelist(self, request: HttpRequest, **_kwargs: Any) -> type[ChangeList]:
        return RecordChangeList

    def has_add_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def lookup_allowed(self, lookup: str, value: Any, request: HttpRequest | None = None) -> bool:
        """Allow only the lookups of the list's own filters. Django would allow any column.

        With a lookup by prefix an operator could find out, letter by letter, what no page shows.
        """
        offered: Iterable[Any] = (
            self.list_filter if request is None else self.get_list_filter(request)
        )
        names: list[Any] = [given[0] if isinstance(given, tuple) else given for given in offered]
        parameters = [getattr(given, "parameter_name", None) for given in names]
        return lookup in parameters or lookup.partition("__")[0] in [*names, self.date_hierarchy]

    def may_see_people(self, request: HttpRequest) -> bool:
        """Whether the operator may see the site's users, and so their e-mail addresses."""
        user_opts = get_user_model()._meta
        return any(
            request.user.has_perm(
                f"{user_opts.app_label}.{get_permission_codename(verb, user_opts)}"
            )
            for verb in ("view", "change")
        )

    def note(self, request: HttpRequest, rows: Sequence[Model], flag: int, message: str) -> None:
        """Write one line for each row to Django's log: who did what, without personal data."""
        LogEntry.objects.log_actions(cast("int", request.user.pk), rows, flag, message)

    def tell_of_gone(self, request: HttpRequest, chosen: Sequence[Model]) -> None:
        """Tell the operator if chosen rows no longer exist."""
        selected = set(request.POST.getlist(ACTION_CHECKBOX_NAME))
        gone = len(selected) - len(chosen)
        if gone > 0 and request.POST.get("select_across", "0") == "0":
            text = ngettext(
                "%d chosen entry is no longer in this list.",
                "%d chosen entries are no longer in this list.",
                gone,
            )
            messages.warning(request, text % gone)

    def may(self, request: HttpRequest, verb: str) -> bool:
        """Whether the operator has the permission for ``verb``."""
        codename = f"{self.opts.app_label}.{verb}_{self.opts.model_name}"
        return request.user.has_perm(codename)
