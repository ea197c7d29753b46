"""Filters with fixed choices, so that they need no query for the choices."""

from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from typing import Any

from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from django_identity.event_types import EventType
from django_identity.requirements import LEVELS
from django_identity.texts.labels import WORDS
from django_identity.texts.operators import Words

SOON = timedelta(hours=6)
# The value of a choice in the address, its label, and the condition of its rows.
Choice = tuple[str, Words, Q]
Choices = Callable[[], Iterable[Choice]]
Filter = type[admin.SimpleListFilter]


def filter_of(name: str, title_: Words, choices: Choices) -> Filter:
    """A filter with these choices."""

    class ChoiceFilter(admin.SimpleListFilter):
        title = title_  # type: ignore[assignment]  # the stubs know lazy texts apart
        parameter_name = name

        def lookups(self, request: HttpRequest, model_admin: Any) -> Any:
            return [(value, label) for value, label, _rows in choices()]

        def queryset(
            self,
            request: HttpRequest,
            queryset: QuerySet[Any],
        ) -> QuerySet[Any]:
            for value, _label, rows in choices():
                if value == self.value():
                    return queryset.filter(rows)
            return queryset

    return ChoiceFilter


def _known(name: str, title: Words, column: str, labels: Mapping[str, Words]) -> Filter:
    """By the known values of a text column, and by the empty one."""
    choices: list[tuple[str, Words, Q]] = []
    for value, label in labels.items():
        has_value = Q((column, value))
        choices.append((value, label, has_value))
    is_empty = Q((column, ""))
    choices.append(("none", _("none"), is_empty))
    return filter_of(name, title, lambda: choices)


def _yes_or_no(name: str, title: Words, rows: Q) -> Filter:
    choices = [("yes", _("yes"), rows), ("no", _("no"), ~rows)]
    return filter_of(name, title, lambda: choices)


def _freshness() -> list[Choice]:
    now = timezone.now()
    soon = now + SOON
    valid = Q(credential_expires_at__gt=now)
    return [
        ("long", _("valid for more than 6 h"), Q(credential_expires_at__gt=soon)),
        ("soon", _("runs out within 6 h"), valid & Q(credential_expires_at__lte=soon)),
        ("out", _("ran out"), Q(credential_expires_at__lte=now)),
        ("none", _("no credential"), Q(credential_expires_at=None)),
    ]


def _erasures() -> list[Choice]:
    pending = Q(erased_at=None)
    return [("pending", _("pending"), pending), ("erased", _("erased"), ~pending)]


KYC_LEVEL = _known(
    "level",
    _("KYC level"),
    "kyc_level",
    {level: level for level in LEVELS},
)
KYC_STATUS = _known(
    "status",
    _("KYC status"),
    "kyc_status",
    {status: WORDS[status] for status in ("verified", "rejected")},
)
EVENT_TYPE = _known("type", _("type"), "event_type", {name: name for name in EventType})
FRESHNESS = filter_of("fresh", _("freshness"), _freshness)
FAILING = _yes_or_no("failing", _("re-fetch failing"), Q(refetch_failures__gt=0))
ERASURE = filter_of("state", _("erasure"), _erasures)
LOST = _yes_or_no(
    "lost",
    _("needs a new consent"),
    Q(grant__needs_reauthorization=True),
)
