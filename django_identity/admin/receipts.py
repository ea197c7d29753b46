"""The admin of erasure receipts, which contain no personal data."""

from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.models import CHANGE
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.formats import localize
from django.utils.html import format_html_join
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from django_identity.admin import filters
from django_identity.admin.listing import RecordAdmin
from django_identity.lifecycle.operators import interventions
from django_identity.models import ErasureReceipt
from django_identity.texts import labels
from django_identity.texts import operators as wording

TRIED_AT_ONCE = 10


@admin.register(ErasureReceipt)
class ErasureReceiptAdmin(RecordAdmin):
    """Read-only: operators cannot write receipts. A pending erasure can be tried now."""

    list_display = ("__str__", "requested_at", "erased", "attempts")
    list_filter = (filters.ERASURE, "requested_at")
    fields = (
        "requested_at",
        "erased",
        "attempts",
        "next_attempt_at",
        "error",
        "covered",
        "account_kept",
        "account_was_gone",
    )
    readonly_fields = ("erased", "error", "covered")
    actions = ("try_now",)

    def facts_of(self, row: ErasureReceipt, request: HttpRequest) -> dict[str, Any]:
        """Whom a pending erasure is about."""
        return {"concerned": interventions.concerned_by(row)}

    def has_erase_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("django_identity.erase_linkedidentity")

    @admin.action(description=_("Try now"), permissions=["erase"])
    def try_now(self, request: HttpRequest, queryset: QuerySet[ErasureReceipt]) -> None:
        pending = queryset.filter(erased_at=None).order_by("pk")
        chosen = self.first_of(request, pending, most=TRIED_AT_ONCE)
        done = interventions.try_erasures(chosen)
        self.note(request, chosen, CHANGE, gettext("Tried again."))
        if done:
            text = ngettext("%d erasure is done.", "%d erasures are done.", done)
            messages.success(request, text % done)
        if left := len(chosen) - done:
            text = ngettext(
                "%d erasure is still pending.",
                "%d erasures are still pending.",
                left,
            )
            messages.warning(request, text % left)

    @admin.display(description=_("tables that it covered"))
    def covered(self, receipt: ErasureReceipt) -> SafeString | str:
        counts = [
            (labels.table_name(table), count) for table, count in receipt.counts.items()
        ]
        return format_html_join(mark_safe("<br>"), "{}: {}", counts) or "-"

    @admin.display(description=_("erased"))
    def erased(self, receipt: ErasureReceipt) -> SafeString | str:
        if receipt.erased_at is None:
            return wording.warning_badge(_("pending"))
        return localize(timezone.localtime(receipt.erased_at))
