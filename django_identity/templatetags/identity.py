"""``{% load identity %}``: the button, and what holds for a user."""

from __future__ import annotations

from typing import Any

from django import template
from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.template.context import RequestContext
from django.utils.functional import Promise

from django_identity import conf, words
from django_identity.addresses import address_of
from django_identity.lifecycle.standing import Requirement, standing_of

register = template.Library()


@register.inclusion_tag("django_identity/login_button.html", takes_context=True)
def identity_login_button(
    context: RequestContext,
    label: str = "",
    next: str = "",
    application: str = conf.DEFAULT_ALIAS,
) -> dict[str, Any]:
    """A POST form with one button: ``{% identity_login_button next="/adults/" %}``."""
    return {
        "action": address_of("login", conf.application(application)),
        "label": label,
        "next": next,
        "csrf_token": context.get("csrf_token"),
    }


@register.filter
def has_claim(user: AbstractBaseUser | AnonymousUser, asked: str) -> bool:
    """``user|has_claim:"age_over_18"`` or ``user|has_claim:"country_resident=NG"``."""
    return standing_of(user).has_claim(Requirement.parse(asked))


@register.filter
def has_kyc_level(user: AbstractBaseUser | AnonymousUser, level: str) -> bool:
    """``user|has_kyc_level:"level_2"``."""
    return standing_of(user).has_kyc_level(level)


@register.filter
def in_words(code: str) -> str | Promise:
    """A scope, claim or level in words: ``scope|in_words``."""
    return words.in_words(code)
