"""Filters for the admin's templates. They are not public."""

from __future__ import annotations

from django import template
from django.contrib.auth.models import AbstractBaseUser

from django_identity.admin import wording

register = template.Library()


@register.filter
def person(user: AbstractBaseUser, may_see_people: bool) -> str:
    """The person's name or address, as far as the operator may see it."""
    return wording.person_name(user, may_see=may_see_people)
