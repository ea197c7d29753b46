"""Filters with fixed choices, so that they need no query for the choices."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.contrib import admin
from django.contrib.admin.options import IncorrectLookupParameters
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.dateparse import parse_datetime
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
Choices = Iterable[tuple[str, Words]]


class _Filter(admin.SimpleListFilter, ABC):
    """A filter. ``conditions()`` returns choice -> condition of its rows."""

    choices_in_words: Choices = ()

    def lookups(self, request: HttpRequest, model_admin: Any) -> Any:
        return list(self.choices_in_words)

    @abstractmethod
    def conditions(self) -> dict[str, Q]: ...

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        condition = self.conditions().get(self.value() or "")
        return queryset if condition is None else queryset.filter(condition)


class ApplicationFilter(_Filter):
    title = _("application")
    parameter_name = "of"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Any:
        return [(alias, alias) for alias in conf.aliases()]

    def has_output(self) -> bool:
        """Shown where there is a choice, or where an address already made one."""
        return len(self.lookup_choices) > 1 or self.value() is not None

    def conditions(self) -> dict[str, Q]:
        return {alias: Q(application=alias) for alias in conf.aliases()}


class _KnownValues(_Filter):
    """A filter for a text column: a known value, an empty value, or another value."""

    column: str
    known: Sequence[str]
    #: The label of a known value.
    name_of: Callable[[str], Words] = str

    def lookups(self, request: HttpRequest, model_admin: Any) -> Any:
        named = [(value, self.name_of(value)) for value in self.known]
        return [*named, (NONE, _("none")), (OTHER, _("another"))]

    def conditions(self) -> dict[str, Q]:
        named = {value: Q(**{self.column: value}) for value in self.known}
        return {**named, NONE: Q(**{self.column: ""}), OTHER: self._another()}

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
    choices_in_words = (
        ("long", _("valid for more than 6 h")),
        ("soon", _("runs out within 6 h")),
        ("out", _("ran out")),
        (NONE, _("no credential")),
    )

    def conditions(self) -> dict[str, Q]:
        now = timezone.now()
        return {
            "long": Q(credential_expires_at__gt=now + SOON),
            "soon": Q(credential_expires_at__gt=now, credential_expires_at__lte=now + SOON),
            "out": Q(credential_expires_at__lte=now),
            NONE: Q(credential_expires_at=None),
        }


class FailingFilter(_Filter):
    title = _("re-fetch failing")
    parameter_name = "failing"
    choices_in_words = (("yes", _("yes")), ("no", _("no")))

    def conditions(self) -> dict[str, Q]:
        is_failing = failing(timezone.now())
        return {"yes": is_failing, "no": ~is_failing}


class GrantFilter(_Filter):
    title = _("grant")
    parameter_name = "grant"
    choices_in_words = (
        ("ends", _("runs out within 5 days")),
        ("dead", _("needs a new consent")),
        (NONE, _("none")),
    )

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        if self.value() == NONE:
            return operators.without_grant(queryset)
        condition = self.conditions().get(self.value() or "")
        return queryset if condition is None else operators.with_grant(queryset, condition)

    def conditions(self) -> dict[str, Q]:
        soon = timezone.now() + timedelta(days=5)
        return {
            "ends": Q(refresh_expires_at__lt=soon),
            "dead": Q(needs_reauthorization=True),
        }


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
        try:
            ends = {name: _moment(given) for name, given in self.used_parameters.items()}
        except ValueError as error:
            raise IncorrectLookupParameters(error) from error
        return queryset.filter(**ends)


def _moment(given: Any) -> datetime:
    """Of a parameter that is given several times, the last one counts."""
    moment = parse_datetime(given[-1])
    if moment is None:
        raise ValueError("not a date")
    return bounded(moment)
