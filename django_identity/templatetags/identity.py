"""``{% load identity %}``: the button, and what holds for a user."""

from __future__ import annotations

from typing import Any

from django import template
from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.template.context import Context
from django.utils.functional import Promise

from django_identity import conf, labels
from django_identity.lifecycle.standing import Requirement, standing_of
from django_identity.views.addresses import address_of

SIZES = ("small", "medium", "large")
THEMES = ("filled", "outline", "dark", "light")
_LINKED = "_identity_button_style"

register = template.Library()


@register.inclusion_tag("django_identity/login_button.html", takes_context=True)
def identity_login_button(
    context: Context,
    label: str = "",
    next: str = "",
    application: str = conf.DEFAULT_ALIAS,
    size: str = "medium",
    theme: str = "filled",
) -> dict[str, Any]:
    """A POST form with one button: ``{% identity_login_button next="/adults/" %}``.

    The first button of a page brings its stylesheet along, unless
    ``{% identity_button_style %}`` stands in the page's head. ``size`` is one of ``SIZES``,
    ``theme`` one of ``THEMES``; anything else is a ``TemplateSyntaxError``.
    """
    for given, known in ((size, SIZES), (theme, THEMES)):
        if given not in known:
            raise template.TemplateSyntaxError(f"{given!r} is none of {', '.join(known)}.")
    return {
        "action": address_of("login", conf.application(application)),
        "label": label,
        "next": next,
        "size": size,
        "theme": theme,
        "csrf_token": context.get("csrf_token"),
        "brings_style": _is_first(context),
    }


@register.inclusion_tag("django_identity/button_style.html", takes_context=True)
def identity_button_style(context: Context) -> dict[str, Any]:
    """The button's stylesheet, for the page's head."""
    _is_first(context)
    return {}


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
    return labels.in_words(code)


def _is_first(context: Context) -> bool:
    """Whether this page has not brought the stylesheet yet.

    Remembered on the request: a page is made of several templates, each with a context of its own.
    """
    request = context.get("request")
    if request is None:
        return True
    is_first = not getattr(request, _LINKED, False)
    setattr(request, _LINKED, True)
    return is_first
