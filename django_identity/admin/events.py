"""The admin of webhook events."""

from functools import partialmethod
from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.models import CHANGE
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from django_identity.admin import filters
from django_identity.admin.listing import RecordAdmin
from django_identity.lifecycle.minute import follow_up
from django_identity.models import LinkedIdentity, WebhookEvent

MOST_REPLAYED = 100


@admin.register(WebhookEvent)
class WebhookEventAdmin(RecordAdmin):
    """The list, and a page with the payload of one event."""

    list_display = (
        "__str__",
        "short_subject",
        "outcome",
        "received_at",
        "attempts",
    )
    list_filter = (filters.EVENT_TYPE, "outcome", "received_at")
    search_fields = ("=event_id", "=subject")
    search_words = _("A whole event id or a whole subject.")
    fields = ("event_type",)
    actions = ("replay",)
    has_replay_permission = partialmethod(RecordAdmin.may, verb="replay")

    def facts_of(self, row: WebhookEvent, request: HttpRequest) -> dict[str, Any]:
        """Its person, as long as the event has its content."""
        known = LinkedIdentity.objects.filter(
            subject=row.subject,
            subject_digest=row.subject_digest,
        )
        return {"identity": known.select_related("user").first()}

    @admin.action(description=_("Replay the site's handlers"), permissions=["replay"])
    def replay(self, request: HttpRequest, queryset: QuerySet[WebhookEvent]) -> None:
        """All handlers of the chosen events run again; the event itself is not applied again."""
        newest = queryset.order_by("-pk")
        chosen = self.first_of(request, newest, most=MOST_REPLAYED)
        keys = [event.pk for event in chosen]
        replayed = follow_up.replay(
            WebhookEvent.objects.filter(pk__in=keys),
            again=True,
        )
        self.note(request, chosen, CHANGE, gettext("Replay the site's handlers"))
        text = ngettext(
            "The handlers of %d event run again.",
            "The handlers of %d events run again.",
            replayed,
        )
        messages.success(request, text % replayed)
        if left := len(chosen) - replayed:
            text = ngettext(
                "%d event was left out: its content is deleted, or a worker has it now.",
                "%d events were left out: their content is deleted, or a worker has them now.",
                left,
            )
            messages.warning(request, text % left)
