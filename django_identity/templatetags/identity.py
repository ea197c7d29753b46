"""``{% load identity %}``: the sign-in button, gates and filters."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django import template
from django.core.exceptions import ImproperlyConfigured, SynchronousOnlyOperation
from django.template.base import FilterExpression, Parser, Token, token_kwargs
from django.template.context import Context
from django.template.loader_tags import BlockNode
from django.utils.safestring import SafeString

from django_identity import conf
from django_identity.gates import Gate, closed_to
from django_identity.logs import LogEvent, log
from django_identity.texts import advice, labels
from django_identity.views.pages import address_of

SIZES = ("small", "medium", "large")
THEMES = ("filled", "outline", "dark", "light")
GATE_ARGUMENTS = {"level", "user", "application"}

register = template.Library()
register.filter(labels.in_words)


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

    It brings its stylesheet, which browsers load once. ``size`` is one of ``SIZES``, ``theme`` one
    of ``THEMES``; any other value raises ``TemplateSyntaxError``.
    """
    for given, known in ((size, SIZES), (theme, THEMES)):
        if given not in known:
            raise template.TemplateSyntaxError(f"{given!r} is none of {', '.join(known)}.")
    chosen = conf.application(application)
    return {
        "action": address_of("login", chosen),
        "service": advice.service_name_of(chosen),
        "label": label,
        "next": next,
        "size": size,
        "theme": theme,
        "csrf_token": context.get("csrf_token"),
    }


def _no_if_it_fails(ask: Callable[[], bool]) -> bool:
    """What ``ask`` returns. Any exception of it is logged, and counts as False."""
    try:
        return ask()
    except Exception as error:  # noqa: BLE001  whatever it is, the gate stays closed
        known = isinstance(error, ImproperlyConfigured | SynchronousOnlyOperation)
        reason = str(error) if known else type(error).__name__
        log(LogEvent.GATE_FAILED, level=logging.ERROR, reason=reason)
        return False


@register.filter
def has_claim(user: object, asked: str) -> bool:
    """``user|has_claim:"age_over_18"`` or ``user|has_claim:"country_resident=NG"``.

    The filter never raises, because Django treats an exception under ``not``, ``or`` or ``==`` as
    false and would show the other branch. It logs the exception and returns False.
    """
    return _no_if_it_fails(lambda: _is_open(user, Gate(asked)))


@register.filter
def has_kyc_level(user: object, level: str) -> bool:
    """``user|has_kyc_level:"level_2"``. It never raises, like ``has_claim``."""
    return _no_if_it_fails(lambda: _is_open(user, Gate(kyc_level=level)))


@register.tag
def identity_gate(parser: Parser, token: Token) -> GateNode:
    """``{% identity_gate "age_over_18" %}…{% else %}…{% end_identity_gate %}``.

    The first part is shown if all named claims are proven (``"country_resident=NG"`` asks for a
    value) and the level of ``level="level_2"`` is reached. ``user=`` names the person; the default
    is the request's user. After any failure, such as a missing argument, the second part is shown.
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
    if opened.get_nodes_by_type(BlockNode):
        # Where the template extends another, Django shows the block without what stands around it.
        raise template.TemplateSyntaxError(f"{name} stands around a block. Put it inside.")
    return GateNode(claims, named, opened, closed)


@dataclass(eq=False)
class GateNode(template.Node):
    """The two parts of ``identity_gate`` and its requirements."""

    child_nodelists = ("opened", "closed")
    claims: Sequence[FilterExpression]
    named: Mapping[str, FilterExpression]
    opened: template.NodeList
    closed: template.NodeList

    def render(self, context: Context) -> SafeString:
        is_open = _no_if_it_fails(lambda: self._opens(context))
        return (self.opened if is_open else self.closed).render(context)

    def _opens(self, context: Context) -> bool:
        named = {name: given.resolve(context) for name, given in self.named.items()}
        application = named.get("application", conf.DEFAULT_ALIAS)
        gates = []
        if self.claims:
            asked = [given.resolve(context) for given in self.claims]
            gates.append(Gate(*asked, application=application))
        if "level" in named:
            gates.append(Gate(kyc_level=named["level"], application=application))
        user = named["user"] if "user" in named else _person_of(context)
        return all(_is_open(user, gate) for gate in gates)


def _is_open(user: object, gate: Gate) -> bool:
    if not hasattr(user, "is_authenticated"):
        raise ImproperlyConfigured("there is no user in the template's context")
    return closed_to(gate, user) is None


def _person_of(context: Context) -> object:
    """Prefer the request's user, because ``user`` in the context may be another person."""
    request = context.get("request")
    return context.get("user") if request is None else request.user
