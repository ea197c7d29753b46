"""Erasure receipts: that somebody was erased, and nothing about whom."""

from __future__ import annotations

from django.contrib import admin
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from django_identity.admin import filters, wording
from django_identity.admin.listing import RecordAdmin
from django_identity.models import ErasureReceipt


@admin.register(ErasureReceipt)
class ErasureReceiptAdmin(RecordAdmin):
    """To look at only: a receipt is written once, when it is needed."""

    list_display = ("receipt", "application", "environment_badge", "requested_at", "erased")
    list_filter = (filters.ApplicationFilter, "environment", filters.ErasedFilter)
    date_hierarchy = "requested_at"
    sortable_by = ("requested_at",)
    fields = (
        "application", "environment", "event_id", "requested_at", "erased", "counts",
        "subject_digest",
    )  # fmt: skip
    readonly_fields = ("erased",)

    @admin.display(description=_("receipt"))
    def receipt(self, receipt: ErasureReceipt) -> str:
        return str(receipt)

    @admin.display(description=_("environment"))
    def environment_badge(self, receipt: ErasureReceipt) -> SafeString:
        return wording.environment_badge(receipt.environment)

    @admin.display(description=_("erased"))
    def erased(self, receipt: ErasureReceipt) -> str:
        return wording.spelt(receipt.erased_at) or gettext("pending")
