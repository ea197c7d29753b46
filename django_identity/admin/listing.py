"""The common base class of the lists: read-only, with queries of bounded cost."""

from collections.abc import Callable, Sequence
from functools import cached_property, wraps
from typing import Any, cast

from django.contrib import admin, messages
from django.contrib.admin.models import LogEntry
from django.contrib.auth import get_permission_codename, get_user_model
from django.core.paginator import Paginator
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import SimpleTemplateResponse
from django.urls import URLPattern
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from django_identity import database
from django_identity.boundary import boundary
from django_identity.texts import operators as wording
from django_identity.texts.operators import Words

MOST_LISTED = 10_000
PER_PAGE = 50
#: How Django's filters of a column compare. A database refuses odd values of some others.
FILTERED_BY = ("exact", "isnull", "gte", "lt")
#: What Django calls the filters of the list, in the address of a page to which the list has led.
FILTERS = "_changelist_filters"


class BoundedPaginator(Paginator):  # type: ignore[type-arg]  # generic for the checker alone
    """Counts and lists at most ``most`` rows."""

    most = MOST_LISTED

    @cached_property
    def count(self) -> int:
        rows = cast("QuerySet[Any]", self.object_list).order_by().values("pk")
        return rows[: self.most].count()


def _rendered_behind_it(view: Callable[..., HttpResponse]) -> Any:
    """``view``, whose page Django renders after it has returned: behind the boundary, too."""

    @wraps(view)
    def wrapped(*args: Any, **kwargs: Any) -> HttpResponse:
        response = view(*args, **kwargs)
        if isinstance(response, SimpleTemplateResponse):
            vars(response)["render"] = boundary(response.render)
        return response

    return wrapped


class RecordAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    """A read-only list with read-only pages."""

    paginator = BoundedPaginator
    show_full_result_count = False
    show_facets = admin.ShowFacets.NEVER
    list_per_page = PER_PAGE
    list_max_show_all = PER_PAGE
    ordering = ("-pk",)
    sortable_by = ()
    #: The label of the search field. ``search_help_text`` would hide the field's label from axe.
    search_words: Words = ""
    change_list_template = "admin/django_identity/change_list.html"

    class Media:
        css = {"all": ["django_identity/admin.css"]}

    def has_add_permission(
        self,
        request: HttpRequest,
        obj: Model | None = None,
    ) -> bool:
        return False

    has_change_permission = has_delete_permission = has_add_permission

    def get_search_results(
        self,
        request: HttpRequest,
        queryset: QuerySet[Any],
        search_term: str,
    ) -> tuple[QuerySet[Any], bool]:
        """Search once. Django would search for the count, and again for the rows."""
        found, may_repeat = super().get_search_results(request, queryset, search_term)
        if search_term:
            keys = found.order_by("-pk").values_list("pk", flat=True)[:MOST_LISTED]
            found = queryset.filter(pk__in=list(keys))
        return found, may_repeat

    def lookup_allowed(self, lookup: str, value: Any, request: Any = None) -> bool:
        """Allow only the lookups of the list's own filters. Django would allow any column.

        With a lookup by prefix an operator could find out, letter by letter, what no page shows.
        """
        column, _separator, kind = lookup.partition("__")
        for list_filter in self.list_filter:
            if lookup == getattr(list_filter, "parameter_name", None):
                return True
            if column == list_filter and kind in FILTERED_BY:
                return True
        return False

    def get_urls(self) -> list[URLPattern]:
        """Each view, Django's own included, lets errors of the site's code out by our door."""
        patterns = super().get_urls()
        for pattern in patterns:
            pattern.callback = boundary(_rendered_behind_it(pattern.callback))
        return patterns

    @database.non_atomic
    def changelist_view(
        self,
        request: HttpRequest,
        *args: Any,
        **kwargs: Any,
    ) -> HttpResponse:
        """The list and its actions, outside a transaction, because a re-fetch needs that.

        An action of a page leads to the list as it was filtered when it led to the page.
        """
        answer = super().changelist_view(request, *args, **kwargs)
        filters = request.POST.get(FILTERS)
        if filters and answer.get("Location") == request.path:
            return redirect(f"{request.path}?{filters}")
        return answer

    def render_change_form(
        self,
        request: HttpRequest,
        context: dict[str, Any],
        *args: Any,
        **kwargs: Any,
    ) -> HttpResponse:
        """A page has a button for each action that the operator may do, and names people if so."""
        choices = self.get_action_choices(request, default_choices=[])
        context["allowed_actions"] = dict(choices)
        context["may_see_people"] = self.may_see_people(request)
        context["filters"] = request.GET.get(FILTERS, "")
        context |= self.facts_of(context["original"], request)
        return super().render_change_form(request, context, *args, **kwargs)

    def facts_of(self, row: Any, request: HttpRequest) -> dict[str, Any]:
        """What the page of ``row`` shows beside its columns."""
        return {}

    def may_see_people(self, request: HttpRequest) -> bool:
        """Whether the operator may see the site's users, and so their e-mail addresses."""
        people = admin.ModelAdmin(get_user_model(), self.admin_site)
        return people.has_view_permission(request)

    def name_of(self, request: HttpRequest, identity: Any) -> str:
        """The person's name, as far as the operator may see it."""
        return wording.person_name(identity.user, may_see=self.may_see_people(request))

    def context(
        self,
        request: HttpRequest,
        title: Words,
        **more: Any,
    ) -> dict[str, Any]:
        """The context of a page beside the list and the form."""
        return {
            **self.admin_site.each_context(request),
            "title": title,
            "opts": self.opts,
            "media": self.media,
            "may_see_people": self.may_see_people(request),
            **more,
        }

    @admin.display(description=_("subject"))
    def short_subject(self, row: Any) -> SafeString:
        return wording.short_subject(row.subject)

    def note(
        self,
        request: HttpRequest,
        rows: Sequence[Model],
        flag: int,
        message: str,
    ) -> None:
        """Write one line for each row to Django's log: who did what, without personal data."""
        LogEntry.objects.log_actions(cast("int", request.user.pk), rows, flag, message)

    def first_of(
        self,
        request: HttpRequest,
        chosen: QuerySet[Any],
        *,
        most: int,
    ) -> list[Any]:
        """The first ``most`` of the chosen rows. The operator is told if others are left."""
        rows = list(chosen[: most + 1])
        if len(rows) > most:
            text = gettext("Only the first %d were taken. Choose the others again.")
            messages.warning(request, text % most)
        return rows[:most]

    def may(self, request: HttpRequest, verb: str) -> bool:
        codename = get_permission_codename(verb, self.opts)
        return request.user.has_perm(f"{self.opts.app_label}.{codename}")
