"""``{% load identity %}``: the button, and what holds for a user."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any, ParamSpec

from django import template
from django.core.exceptions import ImproperlyConfigured, SynchronousOnlyOperation
from django.template.base import FilterExpression, Parser, Token, token_kwargs
from django.template.context import Context
from django.utils.functional import Promise
from django.utils.safestring import SafeString

from django_identity import conf, labels
from django_identity.gates import Gate, is_open
from django_identity.lifecycle.standing import UNASKED, Requirement
from django_identity.views.addresses import address_of

SIZES = ("small", "medium", "large")
THEMES = ("filled", "outline", "dark", "light")
GATE_ARGUMENTS = {"level", "user", "application"}
_LINKED = "_identity_button_style"

P = ParamSpec("P")
logger = logging.getLogger("django_identity.gates")
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


def _no_if_it_fails(ask: Callable[P, bool]) -> Callable[P, bool]:
    """Log whatever ``ask`` raises, and answer no."""

    @wraps(ask)
    def asked(*args: P.args, **kwargs: P.kwargs) -> bool:
        try:
            return ask(*args, **kwargs)
        except Exception as error:  # noqa: BLE001  whatever it is, the gate stays closed
            known = isinstance(error, ImproperlyConfigured | SynchronousOnlyOperation)
            reason = str(error) if known else type(error).__name__
            logger.error("a gate in a template stays closed: %s", reason)
            return False

    return asked


@register.filter
@_no_if_it_fails
def has_claim(user: object, asked: str) -> bool:
    """``user|has_claim:"age_over_18"`` or ``user|has_claim:"country_resident=NG"``.

    Never raises: Django takes an exception under ``not``, ``or`` or ``==`` for false, and would
    open the other branch. What is unexpected is logged, and the answer is no.
    """
    return _holds(user, Gate((Requirement.parse(asked),)))


@register.filter
@_no_if_it_fails
def has_kyc_level(user: object, level: str) -> bool:
    """``user|has_kyc_level:"level_2"``; it never raises, as ``has_claim``."""
    return _holds(user, Gate(kyc_level=level))


@register.tag
def identity_gate(parser: Parser, token: Token) -> GateNode:
    """``{% identity_gate "age_over_18" %}…{% else %}…{% end_identity_gate %}``.

    Asks for every claim that it names (``"country_resident=NG"`` for a value), and for a level with
    ``level="level_2"``. The person is ``user=`` if it is given, else the request's. Whatever fails
    shows the second part: an argument that is not there, too.
    """
    name, *bits = token.split_contents()
    claims, named = [], {}
    for bit in bits:
        if given := token_kwargs([bit], parser):
            named.update(given)
        else:
            claims.append(parser.compile_filter(bit))
    if not named.keys() <= GATE_ARGUMENTS or not (claims or "level" in named):
        raise template.TemplateSyntaxError(f"{name} takes claims, and level=, user=, application=.")
    opened, closed = parser.parse(("else", "end_identity_gate")), template.NodeList()
    if parser.next_token().contents == "else":
        closed = parser.parse(("end_identity_gate",))
        parser.delete_first_token()
    return GateNode(claims, named, opened, closed)


class GateNode(template.Node):
    """The two parts of ``identity_gate``, and what its gate asks for."""

    child_nodelists = ("opened", "closed")

    def __init__(
        self,
        claims: Sequence[FilterExpression],
        named: Mapping[str, FilterExpression],
        opened: template.NodeList,
        closed: template.NodeList,
    ) -> None:
        self.claims, self.named = claims, named
        self.opened, self.closed = opened, closed

    def render(self, context: Context) -> SafeString:
        return (self.opened if self._is_open(context) else self.closed).render(context)

    @_no_if_it_fails
    def _is_open(self, context: Context) -> bool:
        named = {name: given.resolve(context) for name, given in self.named.items()}
        claims = tuple(Requirement.parse(given.resolve(context)) for given in self.claims)
        gate = Gate(
            claims,
            kyc_level=named.get("level", UNASKED),
            application=named.get("application", conf.DEFAULT_ALIAS),
        )
        return _holds(named["user"] if "user" in named else _person_of(context), gate)


@register.filter
def in_words(code: str) -> str | Promise:
    """A scope, claim or level in words: ``scope|in_words``."""
    return labels.in_words(code)


def _holds(user: object, gate: Gate) -> bool:
    if not hasattr(user, "is_authenticated"):
        raise ImproperlyConfigured("there is no user in the template's context")
    return is_open(gate, user)


def _person_of(context: Context) -> object:
    """A page about somebody else may have them as ``user``: the request's own comes first."""
    request = context.get("request")
    return context.get("user") if request is None else request.user


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
