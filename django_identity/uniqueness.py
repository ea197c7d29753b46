"""The columns of each unique rule of a model: by a field, by fields together, by a constraint."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

from django.db import models
from django.db.models import F, Q

Column: TypeAlias = "models.Field[Any, Any]"


@dataclass(frozen=True, slots=True)
class UniqueRule:
    """``columns``: the names of those that together differ in every two rows.

    ``condition``: the names of those that choose the rows to compare.
    """

    columns: frozenset[str]
    condition: frozenset[str] = frozenset()


def is_named(field: Column) -> bool:
    """Whether a unique rule of its model names ``field``."""
    return any(
        field.name in rule.columns | rule.condition for rule in rules_of(field.model)
    )


def rules_of(model: type[models.Model]) -> Iterator[UniqueRule]:
    """What is unique in ``model``: by a field, by fields together, or by a constraint."""
    name_of_sign_in = getattr(model, "USERNAME_FIELD", "")
    for field in model._meta.local_concrete_fields:
        # What signs in is unique, even if only the sign-in says so.
        if field.unique or field.name == name_of_sign_in:
            yield UniqueRule(names_in(model, F(field.name)))

    for names in model._meta.unique_together:
        yield UniqueRule(names_in(model, *map(F, names)))

    for constraint in model._meta.constraints:
        if isinstance(constraint, models.UniqueConstraint):
            fields = map(F, constraint.fields)
            columns = names_in(model, *fields, *constraint.expressions)
            yield UniqueRule(columns, names_in(model, constraint.condition or Q()))


def names_in(model: type[models.Model], *expressions: Any) -> frozenset[str]:
    """The columns of ``model`` in the expressions.

    Of a generated column, those that it is made of.
    """
    names: frozenset[str] = frozenset(Q(*expressions).referenced_base_fields)
    for field in model._meta.local_concrete_fields:
        if field.generated and field.name in names:
            made_of = field.expression  # type: ignore[attr-defined]  # not in the stubs
            names = names - {field.name} | names_in(model, made_of)
    return names
