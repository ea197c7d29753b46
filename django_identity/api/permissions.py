"""Gates for Django REST framework: ``permission_classes = [HasClaim("age_over_18")]``."""

from __future__ import annotations

from typing import Any, NoReturn, Self

from rest_framework.permissions import (
    AND,
    NOT,
    OR,
    BasePermission,
    OperandHolder,
    OperationHolderMixin,
    SingleOperandHolder,
)
from rest_framework.request import Request
from rest_framework.response import Response

from django_identity import conf
from django_identity.gates import Gate, is_open, keep_private
from django_identity.lifecycle.standing import UNASKED, Requirement, Unasked


class _Combining(OperationHolderMixin):
    """Combine with ``&``, ``|`` and ``~``. ``and``, ``or`` and ``not`` would drop a permission."""

    def __bool__(self) -> NoReturn:
        raise TypeError("combine permissions with &, | and ~, not with and, or and not")

    def __and__(self, other: Any) -> _Combined:
        return _combined(AND, self, other)

    def __or__(self, other: Any) -> _Combined:
        return _combined(OR, self, other)

    def __rand__(self, other: Any) -> _Combined:
        return _combined(AND, other, self)

    def __ror__(self, other: Any) -> _Combined:
        return _combined(OR, other, self)

    def __invert__(self) -> _Negated:
        return _negated(self)


class _Combined(_Combining, OperandHolder):
    """Two combined permissions, at least one of them from this module."""


class _Negated(_Combining, SingleOperandHolder):
    """The negation of a permission from this module."""


def _combined(operator: Any, first: Any, second: Any) -> _Combined:
    return _Combined(operator, first, second)


def _negated(permission: Any) -> _Negated:
    opposite: Any = NOT
    return _Negated(opposite, permission)


class _Permission(_Combining, BasePermission):
    """An object in a list of classes: calling it returns the object itself."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate

    def __call__(self) -> Self:
        return self

    def has_permission(self, request: Request, view: Any) -> bool:
        _keep_answer_private(view)
        return is_open(self._gate, request.user)

    def has_object_permission(self, request: Request, view: Any, obj: object) -> bool:
        return self.has_permission(request, view)


class HasClaim(_Permission):
    """The claim is proven for the request's user, with this ``value`` if one is given."""

    code = "claim_missing"

    def __init__(
        self,
        claim: str,
        *,
        value: str | Unasked = UNASKED,
        application: str = conf.DEFAULT_ALIAS,
    ) -> None:
        super().__init__(Gate((Requirement(claim, value),), application=application))


class HasKycLevel(_Permission):
    """The service verified the request's user at ``level`` or above."""

    code = "kyc_level_missing"

    def __init__(self, level: str, *, application: str = conf.DEFAULT_ALIAS) -> None:
        super().__init__(Gate(kyc_level=level, application=application))


def _keep_answer_private(view: Any) -> None:
    """Mark the response of ``view`` as private, whatever the permission decides."""
    finalize = getattr(view, "finalize_response", None)
    if finalize is None:
        return

    def finalize_private(*args: Any, **kwargs: Any) -> Response:
        response: Response = keep_private(finalize(*args, **kwargs), "Authorization")
        return response

    view.finalize_response = finalize_private
