"""``{% load identity %}``: the sign-in button, gates and filters."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from django import template
from django.core.exceptions import ImproperlyConfigured, SynchronousOnlyOperation
from django.template.base import FilterExpression, Parser, Token, token_kwargs
from django.template.context import Context
from django.template.loader_tags import BlockNode
from django.utils.safestring import SafeString

from django_identity.gates import Gate, claims_of_all, closed_to
from django_identity.gates.gate import Claims, Session
from django_identity.lifecycle.standing.standing import may_have_standing
from django_identity.logs import LogEvent, log
from django_identity.policy.names import service_name_of
from django_identity.requirements import NotARequirement
from django_identity.texts import labels
from django_identity.web.pages import address_of

SIZES = ("small", "medium", "large")
THEMES = ("filled", "outline", "dark", "light")
# The argument of the tag -> the argument of its gate.
ASKED = {"level": "kyc_level", "scope": "scope", "minutes": "minutes"}
GATE_ARGUMENTS = {*ASKED, "user"}

Answer = TypeVar("Answer")

register = template.Library()
register.filter(labels.in_words)


@register.inclusion_tag("django_identity/login_button.html", takes_context=True)
def identity_login_button(
    context: Context,
    label: str = "",
    next: str = "",
    size: str = "medium",
    theme: str = "filled",
) -> dict[str, Any]:
    """A POST form with one button: ``{% identity_login_button next="/adults/" %}``.

    It brings its stylesheet, which browsers load once. ``size`` is one of ``SIZES``, ``theme`` one
    of ``THEMES``; any other value raises ``TemplateSyntaxError``.
    """
    for value, known in ((size, SIZES), (theme, THEMES)):
        if value not in known:
            raise template.TemplateSyntaxError(
                f"{value!r} is none of {', '.join(known)}.",
            )
    return {
        "action": address_of("login"),
        "service": service_name_of(),
        "label": label,
        "next": next,
        "size": size,
        "theme": theme,
        "csrf_token": context.get("csrf_token"),
    }


def _closed_if_it_fails(ask: Callable[[], Answer], closed: Answer) -> Answer:
    """What ``ask`` returns. Any exception of it is logged, and counts as ``closed``."""
    try:
        return ask()
    except Exception as error:  # noqa: BLE001  whatever it is, the gate stays closed
        log(LogEvent.GATE_FAILED, level=logging.ERROR, reason=_reason_of(error))
        return closed


def _reason_of(error: Exception) -> str:
    """For the log. A template's argument may be somebody's data, so it stays unquoted."""
    if isinstance(error, NotARequirement):
        return error.rule
    if isinstance(error, ImproperlyConfigured | SynchronousOnlyOperation):
        return str(error)
    return type(error).__name__


@register.filter
def has_claim(user: object, asked: str) -> bool:
    """``user|has_claim:"age_over_18"`` or ``user|has_claim:"country_resident=PT|FR"``.

    The filter never raises, because Django treats an exception under ``not``, ``or`` or ``==`` as
    false and would show the other branch. It logs the exception and returns False.
    """
    return _closed_if_it_fails(lambda: _is_open(user, Gate(asked)), False)


@register.filter
def has_kyc_level(user: object, level: str) -> bool:
    """``user|has_kyc_level:"level_2"``. It never raises, like ``has_claim``."""
    return _closed_if_it_fails(lambda: _is_open(user, Gate(kyc_level=level)), False)


@register.simple_tag
def identity_claims_of(users: Iterable[Any]) -> list[tuple[Any, Claims]]:
    """Each of ``users`` with the claims that open a gate, in two queries for all of them::

        {% identity_claims_of members as proven %}
        {% for member, claims in proven %}{% if claims.age_over_18 %}…{% endif %}{% endfor %}

    After any failure nobody has a claim.
    """
    people = list(users or ())
    nobody = [(user, Claims()) for user in people]
    return _closed_if_it_fails(lambda: _with_claims(people), nobody)


def _with_claims(people: Iterable[Any]) -> list[tuple[Any, Claims]]:
    claims = claims_of_all(people)
    # The key of somebody without a standing may be another person's.
    return [
        (user, claims[user.pk] if may_have_standing(user) else {}) for user in people
    ]


@register.tag
def identity_gate(parser: Parser, token: Token) -> GateNode:
    """``{% identity_gate "age_over_18" %}…{% else %}…{% end_identity_gate %}``.

    The first part is shown if all named claims are proven (``"country_resident=PT|FR"`` asks for
    one of these values), the level of ``level="level_2"`` is reached, the person has allowed
    ``scope=``, and came back from the service within ``minutes=``. ``user=`` names the person; the
    default is the request's user. After any failure, such as a missing argument, the second part is
    shown.
    """
    name, *bits = token.split_contents()
    claims: list[FilterExpression] = []
    named: dict[str, FilterExpression] = {}
    for bit in bits:
        argument = token_kwargs([bit], parser)
        named.update(argument)
        if not argument:
            claims.append(parser.compile_filter(bit))
    asks_nothing = not claims and named.keys().isdisjoint(ASKED)
    if asks_nothing or not named.keys() <= GATE_ARGUMENTS:
        arguments = ", ".join(f"{argument}=" for argument in sorted(GATE_ARGUMENTS))
        raise template.TemplateSyntaxError(f"{name} takes claims, and {arguments}.")

    partials = parser.extra_data.setdefault("partials", {})
    known = len(partials)
    opened = parser.parse(("else", "end_identity_gate"))
    has_partial = len(partials) > known
    closed = template.NodeList()
    if parser.next_token().contents == "else":
        closed = parser.parse(("end_identity_gate",))
        parser.delete_first_token()
    if has_partial or opened.get_nodes_by_type(BlockNode):
        # Django shows a partial, and where the template extends another a block, without what
        # stands around it.
        raise template.TemplateSyntaxError(
            f"{name} stands around a block or a partial. Put it inside.",
        )
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
        if _closed_if_it_fails(lambda: self._opens(context), False):
            return self.opened.render(context)
        return self.closed.render(context)

    def _opens(self, context: Context) -> bool:
        named = {
            name: argument.resolve(context) for name, argument in self.named.items()
        }
        user = named["user"] if "user" in named else _person_of(context)
        session = getattr(context.get("request"), "session", None)
        gates = list(self._gates(context, named))
        return all(_is_open(user, gate, session) for gate in gates)

    def _gates(self, context: Context, named: Mapping[str, Any]) -> Iterator[Gate]:
        if self.claims:
            claims = [argument.resolve(context) for argument in self.claims]
            yield Gate(*claims)
        for name, argument in ASKED.items():
            if name in named:
                asked: dict[str, Any] = {argument: named[name]}
                yield Gate(**asked)


def _is_open(user: object, gate: Gate, session: Session | None = None) -> bool:
    if not hasattr(user, "is_authenticated"):
        raise ImproperlyConfigured("there is no user in the template's context")
    return closed_to(gate, user, session=session) is None


def _person_of(context: Context) -> object:
    """Prefer the request's user, because ``user`` in the context may be another person."""
    request = context.get("request")
    if request is None:
        return context.get("user")
    return request.user
