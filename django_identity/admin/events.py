"""The admin of webhook events."""

from functools import partialmethod
from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.models import CHANGE
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.defaultfilters import date
from django.utils import timezone
from django.utils.html import format_html_join
from django.utils.safestring import SafeString
from django.utils.text import format_lazy
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from django_identity.admin import filters
from django_identity.admin.listing import RecordAdmin
from django_identity.lifecycle import follow_up
from django_identity.models import WebhookEvent
from django_identity.texts import operators as wording

MOST_REPLAYED = 100


@admin.register(WebhookEvent)
class WebhookEventAdmin(RecordAdmin):
    """The list, and a page with the payload of one event."""

    list_display = ("kind", "short_subject", "where", "outcome", "times", "attempts")
    list_filter = (filters.EVENT_TYPE, "outcome", filters.APPLICATION, "received_at")
    search_fields = ("=event_id", "=subject")
    search_words = _("A whole event id or a whole subject.")
    fields = ("event_type",)
    actions = ("replay",)
    has_replay_permission = partialmethod(RecordAdmin.may, verb="replay")

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        event = context["original"]
        context |= {
            "payload": "" if event.payload is None else wording.as_json(event.payload),
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
    def replay(self, request: HttpRequest, queryset: QuerySet[WebhookEvent]) -> None:
        """All handlers of the chosen events run again; the event itself is not applied again."""
        chosen = tuple(queryset.order_by("pk")[: MOST_REPLAYED + 1])
        if len(chosen) > MOST_REPLAYED:
            text = ngettext("Choose %d event.", "Choose %d events at most.", MOST_REPLAYED)
            messages.error(request, text % MOST_REPLAYED)
            return
        keys = [event.pk for event in chosen]
        replayed = follow_up.replay(WebhookEvent.objects.filter(pk__in=keys), again=True)
        self.note(request, chosen, CHANGE, gettext("Replayed the handlers."))
        text = ngettext(
            "The handlers of %d event run again.", "The handlers of %d events run again.", replayed
        )
        messages.success(request, text % replayed)
        if left := len(chosen) - replayed:
            text = ngettext(
                "%d event was left out: its content is deleted, or a worker has it now.",
                "%d events were left out: their content is deleted, or a worker has them now.",
                left,
            )
            messages.warning(request, text % left)
