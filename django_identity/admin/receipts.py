"""The admin of erasure receipts, which contain no personal data."""

from django.contrib import admin
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from django_identity.admin import filters, wording
from django_identity.admin.listing import RecordAdmin
from django_identity.models import ErasureReceipt
from django_identity.texts import labels


@admin.register(ErasureReceipt)
class ErasureReceiptAdmin(RecordAdmin):
    """Read-only: operators cannot write receipts."""

    list_display = ("receipt", "application", "environment_badge", "requested_at", "erased")
    list_filter = (
        filters.ApplicationFilter, "environment", ("erased_at", admin.EmptyFieldListFilter),
        ("requested_at", filters.DateFilter),
    )  # fmt: skip
    sortable_by = ("requested_at",)
    fields = (
        "where", "event_id", "requested_at", "erased", "attempts", "next_attempt_at", "trouble",
        "counted", "account_kept", "digest",
    )  # fmt: skip
    readonly_fields = ("where", "erased", "trouble", "counted", "digest")

    @admin.display(description=_("receipt"))
    def receipt(self, receipt: ErasureReceipt) -> str:
        return str(receipt)

    @admin.display(description=_("environment"))
    def environment_badge(self, receipt: ErasureReceipt) -> SafeString:
        return wording.environment_badge(receipt.environment)

    @admin.display(description=_("last error"))
    def trouble(self, receipt: ErasureReceipt) -> SafeString | str:
        """The error of the site's own erasure code, while the erasure is pending."""
        if receipt.erased_at is not None or not receipt.error:
            return "-"
        return format_html('<code dir="ltr">{}</code>', receipt.error)

    @admin.display(description=_("what was erased"))
    def counted(self, receipt: ErasureReceipt) -> SafeString | str:
        kinds = ((labels.kind_of(table)[0], count) for table, count in receipt.counts.items())
        return format_html_join(mark_safe("<br>"), "{}: {}", kinds) or "-"

    @admin.display(description=_("subject digest"))
    def digest(self, receipt: ErasureReceipt) -> SafeString:
        return format_html('<bdi class="identity-subject">{}</bdi>', receipt.subject_digest)

    @admin.display(description=_("erased"))
    def erased(self, receipt: ErasureReceipt) -> str:
        return wording.spelt(receipt.erased_at) or gettext("pending")
