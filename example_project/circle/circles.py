"""The circles that people can join: a fixed list, because a demo needs no back office."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from example_project.circle.models import Membership


@dataclass(frozen=True, slots=True)
class Circle:
    """People who each pay ``amount`` a month. Each month one of them gets the sum."""

    slug: str
    name: str | Promise
    amount: str
    pot: str
    seats: int
    taken: int
    starts: str | Promise


def euros(amount: int) -> str:
    return _with_spaces(f"€ {amount:,}")


def naira(amount: int) -> str:
    return _with_spaces(f"₦ {amount:,}")


def _with_spaces(amount: str) -> str:
    """No-break spaces: in right-to-left text other spaces would swap the parts of 1 200."""
    return amount.replace(" ", "\u00a0").replace(",", "\u00a0")


FOR_ADULTS = (
    Circle(
        "market-day",
        _("Market Day"),
        euros(50),
        euros(600),
        12,
        9,
        _("in January"),
    ),
    Circle(
        "first-rent",
        _("First Rent"),
        euros(120),
        euros(1_200),
        10,
        6,
        _("in February"),
    ),
    Circle("school-year", _("School Year"), euros(80), euros(640), 8, 7, _("in March")),
)
FOR_RESIDENTS = (
    Circle(
        "lagos-traders",
        _("Lagos Traders"),
        naira(40_000),
        naira(400_000),
        10,
        8,
        _("in January"),
    ),
    Circle(
        "harvest",
        _("Harvest"),
        naira(25_000),
        naira(300_000),
        12,
        5,
        _("in April"),
    ),
)


def joined_by(user: AbstractBaseUser | AnonymousUser) -> list[Circle]:
    """The circles of ``user``."""
    slugs = set(
        Membership.objects.filter(user_id=user.pk).values_list("circle", flat=True),
    )
    return [circle for circle in (*FOR_ADULTS, *FOR_RESIDENTS) if circle.slug in slugs]


def join(
    user: AbstractBaseUser | AnonymousUser,
    slug: str,
    *,
    among: Iterable[Circle],
) -> bool:
    """Let ``user`` join the circle ``slug``. Returns False if it is not among the circles."""
    if slug not in {circle.slug for circle in among}:
        return False
    Membership.objects.get_or_create(user_id=user.pk, circle=slug)
    return True


def leave(user: AbstractBaseUser | AnonymousUser, slug: str) -> bool:
    """Take ``user`` out of the circle ``slug``. Returns False if they were not in it."""
    deleted, _counts = Membership.objects.filter(user_id=user.pk, circle=slug).delete()
    return deleted == 1
