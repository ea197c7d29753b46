"""What stands before a view, as a value: whether one demand asks for less than another.

A demand is a requirement, a permission of somebody else's, or a combination of demands, as Django
REST framework's ``&``, ``|`` and ``~`` make them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, get_args

from django_identity.conf import DEFAULT_ALIAS
from django_identity.gates.gate import describe as describe_requirement
from django_identity.requirements import RequiredClaim, Requirement


@dataclass(frozen=True, slots=True)
class Foreign:
    """Code that is not ours, of which the name is all that is known: ``module:name``."""

    name: str

    def implies(self, others: Iterable[object]) -> bool:
        return self in others


@dataclass(frozen=True, slots=True)
class Every:
    """All of ``parts``. Without any, everybody passes."""

    parts: tuple[Demand, ...] = ()


@dataclass(frozen=True, slots=True)
class Some:
    """At least one of ``parts``."""

    parts: tuple[Demand, ...]


@dataclass(frozen=True, slots=True)
class Not:
    """Whoever does not pass ``part``."""

    part: Demand


Demand = Requirement | Foreign | Every | Some | Not
KINDS: dict[str, Any] = {kind.__name__: kind for kind in get_args(Demand)}
OPEN = Every()


def every(demands: Iterable[Demand]) -> Demand:
    """All of ``demands``, without a combination in a combination."""
    parts: list[Demand] = []
    for demand in demands:
        parts += demand.parts if isinstance(demand, Every) else [demand]
    return parts[0] if len(parts) == 1 else Every(tuple(parts))


def some(demands: Iterable[Demand]) -> Demand:
    """One of ``demands``, without a combination in a combination."""
    parts: list[Demand] = []
    for demand in demands:
        parts += demand.parts if isinstance(demand, Some) else [demand]
    return parts[0] if len(parts) == 1 else Some(tuple(parts))


def implies(now: Demand, before: Demand) -> bool:
    """Whether whoever passes ``now`` passes ``before`` too: ``now`` asks for no less."""
    return now == before or _leads_to((now,), (before,))


def _leads_to(having: tuple[Demand, ...], wanted: tuple[Demand, ...]) -> bool:
    """Whether whoever has all of ``having`` has one of ``wanted``.

    This is Gentzen's sequent calculus: each step takes one combination apart, without changing the
    answer, until both sides have requirements alone.
    """
    for place, demand in enumerate(having):
        rest = having[:place] + having[place + 1 :]
        match demand:
            case Every(parts=parts):
                return _leads_to(rest + parts, wanted)
            case Some(parts=parts):
                return all(_leads_to((*rest, part), wanted) for part in parts)
            case Not(part=part):
                return _leads_to(rest, (*wanted, part))
    for place, demand in enumerate(wanted):
        rest = wanted[:place] + wanted[place + 1 :]
        match demand:
            case Every(parts=parts):
                return all(_leads_to(having, (*rest, part)) for part in parts)
            case Some(parts=parts):
                return _leads_to(having, rest + parts)
            case Not(part=part):
                return _leads_to((*having, part), rest)
    for demand in having:
        if not isinstance(demand, Every | Some | Not) and demand.implies(wanted):
            return True
    return False


def describe(demand: Demand) -> str:
    """``(age_over_18 & ~(level_3@second | IsAdminUser))``."""
    match demand:
        case Every(parts=()):
            return "open"
        case Every(parts=parts):
            return f"({' & '.join(map(describe, parts))})"
        case Some(parts=parts):
            return f"({' | '.join(map(describe, parts))})"
        case Not(part=part):
            return f"~{describe(part)}"
        case Foreign(name=name):
            return name.rpartition(":")[2]
    text = describe_requirement(demand)
    is_of_default = demand.application == DEFAULT_ALIAS
    return text if is_of_default else f"{text}@{demand.application}"


def as_json(demand: Demand) -> dict[str, Any]:
    """For a file, from which ``from_json`` reads it again."""
    kind = {"kind": type(demand).__name__}
    match demand:
        case Every(parts=parts) | Some(parts=parts):
            return kind | {"parts": [as_json(part) for part in parts]}
        case Not(part=part):
            return kind | {"part": as_json(part)}
        case _:
            return kind | asdict(demand)


def from_json(members: Mapping[str, Any]) -> Demand:
    """The demand that ``as_json`` has written. Anything else raises some error."""
    arguments = dict(members)
    kind = KINDS[arguments.pop("kind")]
    if kind in (Every, Some):
        arguments["parts"] = tuple(from_json(part) for part in arguments["parts"])
    elif kind is Not:
        arguments["part"] = from_json(arguments["part"])
    elif kind is RequiredClaim:
        arguments["values"] = tuple(arguments["values"])
    demand: Demand = kind(**arguments)
    return demand
