"""The common base class of the lists: read-only, with queries of bounded cost."""

import re
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property, wraps
from typing import TYPE_CHECKING, Any, cast

from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.models import LogEntry
from django.contrib.admin.views.main import ChangeList
from django.contrib.auth import get_user_model
from django.core.paginator import Paginator
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from django_identity.admin import wording
from django_identity.admin.wording import Words

if TYPE_CHECKING:  # generic for the type checker alone
    _Paginator = Paginator[Any]
    _ModelAdmin = admin.ModelAdmin[Any]
else:
    _Paginator, _ModelAdmin = Paginator, admin.ModelAdmin

MOST_LISTED = 10_000
#: Characters that change the order in which the text around them is shown.
BIDI_CONTROLS = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
View = Callable[..., HttpResponse]
PER_PAGE = 50
CONFIRMED = "confirmed"


def with_visible_controls(view: View) -> View:
    """The same page, but with each bidirectional control as its code: none may reorder text."""

    def shown(response: HttpResponse) -> None:
        text = response.content.decode(response.charset)
        if BIDI_CONTROLS.search(text):
            escaped = BIDI_CONTROLS.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
            response.content = escaped.encode(response.charset)

    @wraps(view)
    def wrapped(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        response = view(request, *args, **kwargs)
        if isinstance(response, TemplateResponse):
            response.add_post_render_callback(shown)
        return response

    return wrapped


class BoundedPaginator(_Paginator):
    """Counts and lists at most ``MOST_LISTED`` rows. ``is_more``: there are more rows."""

    @cached_property
    def _found(self) -> int:
        return cast("QuerySet[Any]", self.object_list).order_by()[: MOST_LISTED + 1].count()

    @cached_property
    def count(self) -> int:
        return min(self._found, MOST_LISTED)

    @property
    def is_more(self) -> bool:
        return self._found > MOST_LISTED


class InOneDirection(ChangeList):
    """An order whose last column, the primary key, has the direction of the first, as an index."""

    def get_ordering(self, request: HttpRequest, queryset: QuerySet[Any]) -> list[Any]:
        columns = super().get_ordering(request, queryset)
        if set(columns[1:]) == {"-pk"} and not str(columns[0]).startswith("-"):
            return [columns[0], "pk"]
        return columns


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

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        return InOneDirection

    def get_urls(self) -> list[URLPattern]:
        """The pages, which show texts of the service and of people."""
        patterns = super().get_urls()
        for pattern in patterns:
            pattern.callback = with_visible_controls(pattern.callback)
        return patterns

    def has_add_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def lookup_allowed(self, lookup: str, value: Any, request: Any = None) -> bool:
        """Allow only the lookups of the list's own filters. Django would allow any column.

        With a lookup by prefix an operator could find out, letter by letter, what no page shows.
        """
        offered: Iterable[Any] = self.get_list_filter(request)
        names: list[Any] = [given[0] if isinstance(given, tuple) else given for given in offered]
        parameters = [getattr(given, "parameter_name", None) for given in names]
        return lookup in parameters or lookup.partition("__")[0] in names

    def may_see_people(self, request: HttpRequest) -> bool:
        """Whether the operator may see the site's users, and so their e-mail addresses."""
        users = get_user_model()._meta
        names = (f"{users.app_label}.{verb}_{users.model_name}" for verb in ("view", "change"))
        return any(map(request.user.has_perm, names))

    def context(self, request: HttpRequest, title: Words, **more: Any) -> dict[str, Any]:
        """The context of a page beside the list and the form."""
        named = {"title": title, "opts": self.opts, "media": self.media}
        more["may_see_people"] = self.may_see_people(request)
        return {**self.admin_site.each_context(request), **named, **more}

    @admin.display(description=_("subject"))
    def short_subject(self, row: Any) -> SafeString:
        return wording.short_subject(row.subject)

    @admin.display(description=_("application"))
    def where(self, row: Any) -> SafeString:
        return format_html("{} {}", row.application, wording.badge_of(row))

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
        return request.user.has_perm(f"{self.opts.app_label}.{verb}_{self.opts.model_name}")
