"""What stands before a view, as a value: whether one demand asks for less than another.

A demand is a requirement, a permission of somebody else's, or a combination of demands, as Django
REST framework's ``&``, ``|`` and ``~`` make them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple, get_args

from django_identity.gates.gate import describe_requirement
from django_identity.requirements import RequiredClaim, Requirement
from django_identity.strict_json import JSONObject


@dataclass(frozen=True, slots=True)
class Foreign:
    """A decision of the site's own code. Only its name is known: ``module:name``."""

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
    """Everybody who does not pass ``part``."""

    part: Demand


Demand = Requirement | Foreign | Every | Some | Not
KINDS: JSONObject = {kind.__name__: kind for kind in get_args(Demand)}
OPEN = Every()


def every(demands: Iterable[Demand]) -> Demand:
    """All of ``demands``, without a combination in a combination."""
    return _combined(Every, demands)


def some(demands: Iterable[Demand]) -> Demand:
    """One of ``demands``, without a combination in a combination."""
    return _combined(Some, demands)


def _combined(kind: type[Every | Some], demands: Iterable[Demand]) -> Demand:
    parts: list[Demand] = []
    for demand in demands:
        if isinstance(demand, kind):
            parts += demand.parts
        else:
            parts.append(demand)
    if len(parts) == 1:
        return parts[0]
    return kind(tuple(parts))


def implies(now: Demand, before: Demand) -> bool:
    """Whether everybody who passes ``now`` passes ``before`` too: ``now`` asks for no less."""
    if now == before:
        return True
    exception = (
        Assumption(now, passes=True),
        Assumption(before, passes=False),
    )
    return _contradict(exception)


class Assumption(NamedTuple):
    """That somebody passes ``demand``, or does not."""

    demand: Demand
    passes: bool


def _contradict(assumptions: tuple[Assumption, ...]) -> bool:
    """Whether ``assumptions`` are true of nobody.

    This is the method of analytic tableaux: each step takes one combination apart, without changing
    the result, until there are requirements alone.
    """
    passed: list[Requirement | Foreign] = []
    failed: list[Requirement | Foreign] = []
    for place, (demand, passes) in enumerate(assumptions):
        others = assumptions[:place] + assumptions[place + 1 :]
        match demand:
            case Not(part=part):
                return _contradict((*others, Assumption(part, not passes)))
            case Every(parts=parts) | Some(parts=parts):
                of_parts = tuple(Assumption(part, passes) for part in parts)
                # All of it is true of who passes every part, and of who passes not even some part.
                if isinstance(demand, Every) == passes:
                    return _contradict(others + of_parts)
                return all(_contradict((*others, of_part)) for of_part in of_parts)
            case _ if passes:
                passed.append(demand)
            case _:
                failed.append(demand)
    return any(demand.implies(failed) for demand in passed)


def describe(demand: Demand) -> str:
    """``(age_over_18 & ~(level_3 | IsAdminUser))``."""
    match demand:
        case Every(parts=()):
            return "open"
        case Every(parts=parts):
            return _joined(parts, " & ")
        case Some(parts=parts):
            return _joined(parts, " | ")
        case Not(part=part):
            return f"~{describe(part)}"
        case Foreign(name=name):
            return name.rpartition(":")[2]
    return describe_requirement(demand)


def _joined(parts: Iterable[Demand], sign: str) -> str:
    inner = sign.join(map(describe, parts))
    return f"({inner})"


def as_json(demand: Demand) -> JSONObject:
    """For a file, from which ``from_json`` reads it again."""
    members: dict[str, Any] = {"kind": type(demand).__name__}
    match demand:
        case Every(parts=parts) | Some(parts=parts):
            members["parts"] = [as_json(part) for part in parts]
        case Not(part=part):
            members["part"] = as_json(part)
        case _:
            members |= asdict(demand)
    return members


def from_json(members: JSONObject) -> Demand:
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
