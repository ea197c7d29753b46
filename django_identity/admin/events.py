"""The admin of webhook events."""

import json
from functools import partialmethod
from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.models import CHANGE
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.defaultfilters import date
from django.template.response import TemplateResponse
from django.utils import timezone
from django.utils.html import format_html_join
from django.utils.safestring import SafeString
from django.utils.text import format_lazy
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from django_identity.admin import filters, wording
from django_identity.admin.listing import CONFIRMED, RecordAdmin
from django_identity.lifecycle import operators, upkeep
from django_identity.models import Retained, WebhookEvent

MOST_REPLAYED = 100


@admin.register(WebhookEvent)
class WebhookEventAdmin(RecordAdmin):
    """The list, and a page with the payload of one event."""

    list_display = ("kind", "short_subject", "where", "outcome", "times", "attempts")
    list_filter = (
        filters.EventTypeFilter, "outcome", filters.ApplicationFilter,
        ("received_at", filters.DateFilter),
    )  # fmt: skip
    sortable_by = ()
    search_fields = ("event_id",)
    search_words = _("A whole event id or a whole subject.")
    fields = ("event_type",)
    actions = ("replay",)
    has_replay_permission = partialmethod(RecordAdmin.may, verb="replay")

    def get_queryset(self, request: HttpRequest) -> QuerySet[WebhookEvent]:
        """All events except those that the purge has reduced to a digest."""
        kept = [level for level in Retained if level < Retained.DIGEST_ONLY]
        return super().get_queryset(request).filter(kept__in=kept)

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[WebhookEvent], search_term: str
    ) -> tuple[QuerySet[WebhookEvent], bool]:
        return operators.find_events(queryset, search_term), False

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        event = context["original"]
        payload = event.payload
        context |= {
            "payload": "" if payload is None else json.dumps(payload, ensure_ascii=False, indent=2),
            "error": wording.handler_trouble(event),
            "badge": wording.badge_of(event),
            "may_replay": self.may(request, "replay"),
            "title": gettext("Event"),
        }
        return super().render_change_form(request, context, *args, **kwargs)

    @admin.display(description=_("type"))
    def kind(self, event: WebhookEvent) -> str:
        return event.event_type or "-"

    @admin.display(description=format_lazy("{}, {}", _("occurred"), _("received")))
    def times(self, event: WebhookEvent) -> SafeString:
        """Both times in one column, because two columns would push the attempts out of sight."""
        local = map(timezone.localtime, (event.occurred_at, event.received_at))
        both = ((date(at, "SHORT_DATE_FORMAT"), date(at, "TIME_FORMAT")) for at in local)
        return format_html_join(" ", '<span class="identity-word">{} {}</span>', both)

    @admin.action(description=_("Replay the site's handlers"), permissions=["replay"])
    def replay(self, request: HttpRequest, queryset: QuerySet[WebhookEvent]) -> HttpResponse | None:
        chosen = tuple(queryset.order_by("pk")[: MOST_REPLAYED + 1])
        if len(chosen) > MOST_REPLAYED:
            text = ngettext("Choose %d event.", "Choose %d events at most.", MOST_REPLAYED)
            messages.error(request, text % MOST_REPLAYED)
            return None
        self.tell_of_gone(request, chosen)
        if not chosen:
            return None
        if CONFIRMED not in request.POST:
            more = {"chosen": chosen, "checkbox_name": ACTION_CHECKBOX_NAME}
            context = self.context(request, _("Replay the site's handlers"), **more)
            return TemplateResponse(request, "admin/django_identity/replay.html", context)
        keys = [event.pk for event in chosen]
        result = upkeep.replay(WebhookEvent.objects.filter(pk__in=keys), again=True)
        replayed = len(result.due)
        self.note(request, chosen, CHANGE, gettext("Replayed the handlers."))
        text = ngettext(
            "The handlers of %d event run again.", "The handlers of %d events run again.", replayed
        )
        messages.success(request, text % replayed)
        if result.emptied:
            text = ngettext(
                "%d event was refused: its content was deleted.",
                "%d events were refused: their content was deleted.",
                result.emptied,
            )
            messages.warning(request, text % result.emptied)
        if skipped := result.under_way:
            text = ngettext(
                "%d event was left out: a worker is running its handlers.",
                "%d events were left out: a worker is running their handlers.",
                skipped,
            )
            messages.warning(request, text % skipped)
        return None
