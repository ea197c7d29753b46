"""Filters with fixed choices, so that they need no query for the choices."""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.contrib import admin
from django.contrib.admin.options import IncorrectLookupParameters
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from django_identity import conf
from django_identity.admin import wording
from django_identity.admin.wording import Words
from django_identity.handlers import EventType
from django_identity.lifecycle import operators
from django_identity.models import failing
from django_identity.service.moments import bounded

NONE = "none"
OTHER = "other"
SOON = timedelta(hours=6)
# The value of a choice in the address, its label, and the condition of its rows.
Choice = tuple[str, Words, Q]


class _Filter(admin.SimpleListFilter):
    """A filter. Subclasses define ``choices_of_rows``."""

    def choices_of_rows(self) -> list[Choice]:
        raise NotImplementedError

    def lookups(self, request: HttpRequest, model_admin: Any) -> Any:
        return [(value, label) for value, label, _condition in self.choices_of_rows()]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        for value, _label, condition in self.choices_of_rows():
            if value == self.value():
                return self.narrow(queryset, condition)
        return queryset

    def narrow(self, queryset: QuerySet[Any], condition: Q) -> QuerySet[Any]:
        return queryset.filter(condition)


class ApplicationFilter(_Filter):
    title = _("application")
    parameter_name = "of"

    def has_output(self) -> bool:
        """Shown where there is a choice, or where an address already made one."""
        return len(self.lookup_choices) > 1 or self.value() is not None

    def choices_of_rows(self) -> list[Choice]:
        return [(alias, alias, Q(application=alias)) for alias in conf.aliases()]


class _KnownValues(_Filter):
    """A filter for a text column: a known value, an empty value, or another value."""

    column: str
    known: Sequence[str]
    #: The label of a known value.
    name_of: Callable[[str], Words] = str

    def choices_of_rows(self) -> list[Choice]:
        named = [(value, self.name_of(value), Q(**{self.column: value})) for value in self.known]
        none = (NONE, _("none"), Q(**{self.column: ""}))
        return [*named, none, (OTHER, _("another"), self._another())]

    def _another(self) -> Q:
        """Neither empty nor known, as ranges between the known values: an index serves a range.

        In whatever order a collation has the known values, the ranges leave out no other value.
        """
        first, *others = bounds = sorted(["", *self.known])
        ranges = (
            Q(**{f"{self.column}__gt": low, f"{self.column}__lt": high})
            for low, high in zip(bounds, others, strict=False)
        )
        ends = Q(**{f"{self.column}__lt": first}) | Q(**{f"{self.column}__gt": bounds[-1]})
        return Q(*ranges, ends, _connector=Q.OR) & ~Q(**{f"{self.column}__in": bounds})


class KycLevelFilter(_KnownValues):
    title = _("KYC level")
    parameter_name = "level"
    column = "kyc_level"
    known = ("level_1", "level_2")
    name_of = staticmethod(wording.level_name)


class KycStatusFilter(_KnownValues):
    title = _("KYC status")
    parameter_name = "status"
    column = "kyc_status"
    known = ("verified", "rejected")
    name_of = staticmethod(wording.status_name)


class FreshnessFilter(_Filter):
    title = _("freshness")
    parameter_name = "fresh"

    def choices_of_rows(self) -> list[Choice]:
        now = timezone.now()
        ends_later = Q(credential_expires_at__gt=now + SOON)
        ends_soon = Q(credential_expires_at__gt=now, credential_expires_at__lte=now + SOON)
        return [
            ("long", _("valid for more than 6 h"), ends_later),
            ("soon", _("runs out within 6 h"), ends_soon),
            ("out", _("ran out"), Q(credential_expires_at__lte=now)),
            (NONE, _("no credential"), Q(credential_expires_at=None)),
        ]


class FailingFilter(_Filter):
    title = _("re-fetch failing")
    parameter_name = "failing"

    def choices_of_rows(self) -> list[Choice]:
        is_failing = failing(timezone.now())
        return [("yes", _("yes"), is_failing), ("no", _("no"), ~is_failing)]


class GrantFilter(_Filter):
    title = _("grant")
    parameter_name = "grant"

    def choices_of_rows(self) -> list[Choice]:
        ends_soon = Q(refresh_expires_at__lt=timezone.now() + timedelta(days=5))
        return [
            ("ends", _("runs out within 5 days"), ends_soon),
            ("dead", _("needs a new consent"), Q(needs_reauthorization=True)),
            (NONE, _("none"), Q()),
        ]

    def narrow(self, queryset: QuerySet[Any], condition: Q) -> QuerySet[Any]:
        if self.value() == NONE:
            return operators.without_grant(queryset)
        return operators.with_grant(queryset, condition)


class EventTypeFilter(_KnownValues):
    title = _("type")
    parameter_name = "type"
    column = "event_type"
    known = tuple(EventType)


class DateFilter(admin.DateFieldListFilter):
    """Django's own, for every date that an address can name.

    In some time zones Django cannot convert the first and the last day of the calendar.
    """

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        given: Any = self.used_parameters.items()
        try:
            # Of a parameter that is given several times, the last one counts.
            ends = {name: bounded(datetime.fromisoformat(texts[-1])) for name, texts in given}
        except ValueError as error:
            raise IncorrectLookupParameters(error) from error
        return queryset.filter(**ends)
