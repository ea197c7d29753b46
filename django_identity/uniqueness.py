"""What must differ in every two rows of a model, whichever way the model says so."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

from django.db import models

TEXTS = (models.CharField, models.TextField)
Column: TypeAlias = "models.Field[Any, Any]"


def must_differ(field: Column) -> bool:
    """Whether a rule covers ``field``, by itself or together with other columns."""
    return any(field in rule.columns for rule in rules_of(field.model))


@dataclass(frozen=True, slots=True)
class UniqueRule:
    """Columns that together differ in every two rows. ``nulls_differ``: two NULLs do too.

    ``has_condition``: only some rows are compared.
    """

    columns: tuple[Column, ...]
    nulls_differ: bool = True
    has_condition: bool = False

    @property
    def has_text(self) -> bool:
        return any(isinstance(column, TEXTS) for column in self.columns)

    def takes_null(self, field: Column) -> bool:
        """Whether the rule lets ``field`` be NULL in any number of rows."""
        if field not in self.columns:
            return True
        return field.null and self.nulls_differ


def rules_of(model: type[models.Model]) -> Iterator[UniqueRule]:
    """What is unique in ``model``: by a field, by fields together, or by a constraint."""
    name_of_sign_in = getattr(model, "USERNAME_FIELD", "")
    for field in model._meta.local_concrete_fields:
        # What signs in is unique, even if only the sign-in says so.
        if field.unique or field.name == name_of_sign_in:
            yield UniqueRule((field,))

    for names in model._meta.unique_together:
        yield UniqueRule(_columns(model, names))

    for constraint in model._meta.constraints:
        if isinstance(constraint, models.UniqueConstraint):
            columns = _columns(model, _names_in(constraint))
            # An expression may make a value of NULL.
            may_collide = constraint.nulls_distinct is False or constraint.expressions
            yield UniqueRule(
                columns,
                nulls_differ=not may_collide,
                has_condition=constraint.condition is not None,
            )


def _names_in(constraint: models.UniqueConstraint) -> Iterator[str]:
    """The names of the fields in ``constraint``, those in its expressions included."""
    yield from constraint.fields
    for expression in constraint.expressions:
        # ``F`` itself is no expression.
        parts: Iterable[Any] = [expression]
        if hasattr(expression, "flatten"):
            parts = expression.flatten()
        for part in parts:
            if isinstance(part, models.F):
                # Behind it there may be a key of JSON.
                yield part.name.partition("__")[0]  # type: ignore[attr-defined]  # not in the stubs


def _columns(model: type[models.Model], names: Iterable[str]) -> tuple[Column, ...]:
    found: list[Any] = [model._meta.get_field(name) for name in names]
    return tuple(found)
