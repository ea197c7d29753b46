"""Filters with fixed choices, so that they need no query for the choices."""

from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from typing import Any

from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from django_identity import conf
from django_identity.event_types import EventType
from django_identity.requirements import LEVELS
from django_identity.texts.labels import WORDS
from django_identity.texts.operators import Words

SOON = timedelta(hours=6)
STATUSES = {each: WORDS[each] for each in ("verified", "rejected")}
# The value of a choice in the address, its label, and the condition of its rows.
Choice = tuple[str, Words, Q]
Filter = type[admin.SimpleListFilter]


def filter_of(
    name: str, title_: Words, choices_of_rows: Callable[[], Iterable[Choice]]
) -> Filter:
    """A filter with these choices. It is shown where there is more than one."""

    class Choices(admin.SimpleListFilter):
        title = title_  # type: ignore[assignment]  # the stubs know lazy texts apart
        parameter_name = name

        def lookups(self, request: HttpRequest, model_admin: Any) -> Any:
            return [(value, label) for value, label, _rows in choices_of_rows()]

        def has_output(self) -> bool:
            return len(self.lookup_choices) > 1 or self.value() is not None

        def queryset(
            self, request: HttpRequest, queryset: QuerySet[Any]
        ) -> QuerySet[Any]:
            rows = {value: condition for value, _label, condition in choices_of_rows()}
            return queryset.filter(rows.get(str(self.value()), Q()))

    return Choices


def _known(name: str, title: Words, column: str, labels: Mapping[str, Words]) -> Filter:
    """By the known values of a text column, and by the empty one."""
    named = [(value, label, Q(**{column: value})) for value, label in labels.items()]
    return filter_of(
        name, title, lambda: [*named, ("none", _("none"), Q(**{column: ""}))]
    )


def _freshness() -> list[Choice]:
    now = timezone.now()
    ends = "credential_expires_at"
    return [
        ("long", _("valid for more than 6 h"), Q(**{f"{ends}__gt": now + SOON})),
        (
            "soon",
            _("runs out within 6 h"),
            Q(**{f"{ends}__gt": now, f"{ends}__lte": now + SOON}),
        ),
        ("out", _("ran out"), Q(**{f"{ends}__lte": now})),
        ("none", _("no credential"), Q(**{ends: None})),
    ]


def _yes_or_no(name: str, title: Words, rows: Q) -> Filter:
    return filter_of(
        name, title, lambda: [("yes", _("yes"), rows), ("no", _("no"), ~rows)]
    )


APPLICATION = filter_of(
    "of",
    _("application"),
    lambda: [(alias, alias, Q(application=alias)) for alias in conf.aliases()],
)
KYC_LEVEL = _known(
    "level", _("KYC level"), "kyc_level", {each: each for each in LEVELS}
)
KYC_STATUS = _known("status", _("KYC status"), "kyc_status", STATUSES)
EVENT_TYPE = _known("type", _("type"), "event_type", {each: each for each in EventType})
FRESHNESS = filter_of("fresh", _("freshness"), _freshness)
FAILING = _yes_or_no("failing", _("re-fetch failing"), Q(refetch_failures__gt=0))
ERASURE = filter_of(
    "state",
    _("erasure"),
    lambda: [
        ("pending", _("pending"), Q(erased_at=None)),
        ("erased", _("erased"), ~Q(erased_at=None)),
    ],
)
LOST = _yes_or_no(
    "lost", _("needs a new consent"), Q(grant__needs_reauthorization=True)
)
