"""Gates for Django REST framework: ``permission_classes = [HasClaim("age_over_18")]``."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any, NoReturn, Self, cast

from rest_framework import permissions
from rest_framework.exceptions import APIException
from rest_framework.request import Request
from rest_framework.response import Response

from django_identity import conf
from django_identity.gates import Gate, closed_to
from django_identity.lifecycle.standing import UNASKED, Requirement, Unasked
from django_identity.views.closed import Closed, keep_private
from django_identity.views.problems import CHALLENGE, MEDIA_TYPE

# The stubs expect instances.
_AND, _OR, _NOT = cast("Any", (permissions.AND, permissions.OR, permissions.NOT))


class GateClosed(APIException):
    """A permission of this module refuses. ``closed`` says why."""

    def __init__(self, closed: Closed, *, auth_header: str) -> None:
        super().__init__(closed.detail, closed.code)
        self.closed = closed
        self.status_code = closed.status
        if closed.status == HTTPStatus.UNAUTHORIZED:
            self.auth_header = auth_header


class _Combining:
    """Combine with ``&``, ``|`` and ``~``. ``and``, ``or`` and ``not`` would drop a permission."""

    def __bool__(self) -> NoReturn:
        raise TypeError("combine permissions with &, | and ~, not with and, or and not")

    def __and__(self: Any, other: Any) -> Any:
        return _Combined(permissions.OperandHolder(_AND, self, other))

    def __or__(self: Any, other: Any) -> Any:
        return _Combined(permissions.OperandHolder(_OR, self, other))

    def __rand__(self: Any, other: Any) -> Any:
        return _Combined(permissions.OperandHolder(_AND, other, self))

    def __ror__(self: Any, other: Any) -> Any:
        return _Combined(permissions.OperandHolder(_OR, other, self))

    def __invert__(self: Any) -> Any:
        return _Combined(permissions.SingleOperandHolder(_NOT, self))


class _Combined(_Combining):
    """One or two combined permissions, at least one of them from this module."""

    def __init__(self, holder: Any) -> None:
        self._holder = holder

    def __call__(self, *args: Any, **kwargs: Any) -> _Whole:
        return _Whole(self._holder(*args, **kwargs))


class _Whole(permissions.BasePermission):
    """A combined permission. If it allows the request, no gate inside it is why another refuses."""

    def __init__(self, combined: Any) -> None:
        self._combined = combined

    def has_permission(self, request: Request, view: Any) -> bool:
        return _noted(view, allowed=self._combined.has_permission(request, view))

    def has_object_permission(self, request: Request, view: Any, obj: object) -> bool:
        return _noted(view, allowed=self._combined.has_object_permission(request, view, obj))


class _Permission(_Combining, permissions.BasePermission):
    """An object in a list of classes: calling it returns the object itself."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate

    def __call__(self) -> Self:
        return self

    def has_permission(self, request: Request, view: Any) -> bool:
        _answer_as_gate(view)
        closed = closed_to(self._gate, request.user)
        return _noted(view, closed, allowed=closed is None)

    def has_object_permission(self, request: Request, view: Any, obj: object) -> bool:
        return self.has_permission(request, view)


class HasClaim(_Permission):
    """The claim is proven for the request's user, with this ``value`` if one is given."""

    code = "claim_missing"

    def __init__(
        self, claim: str, *, value: str | Unasked = UNASKED, application: str = conf.DEFAULT_ALIAS
    ) -> None:
        super().__init__(Gate((Requirement(claim, value),), application=application))


class HasKycLevel(_Permission):
    """The service verified the request's user at ``level`` or above."""

    code = "kyc_level_missing"

    def __init__(self, level: str, *, application: str = conf.DEFAULT_ALIAS) -> None:
        super().__init__(Gate(kyc_level=level, application=application))


def _noted(view: Any, closed: Closed | None = None, *, allowed: bool) -> bool:
    """Remember at ``view`` which gate refuses the request. Returns ``allowed``."""
    if allowed or closed is not None:
        view.identity_gate_closed = closed
    return allowed


def _answer_as_gate(view: Any) -> None:
    """Let ``view`` refuse as every gate does, and mark its response as private in any case."""
    if hasattr(view, "identity_gate_closed") or not hasattr(view, "permission_denied"):
        return
    view.identity_gate_closed = None
    finalize, refuse = view.finalize_response, view.permission_denied

    def finalize_response(*args: Any, **kwargs: Any) -> Response:
        response = _as_problem(finalize(*args, **kwargs), view)
        keep_private(response, "Authorization")
        return response

    def permission_denied(request: Request, *args: Any, **kwargs: Any) -> None:
        if view.identity_gate_closed is not None:
            challenge = view.get_authenticate_header(request) or CHALLENGE
            raise GateClosed(view.identity_gate_closed, auth_header=challenge)
        refuse(request, *args, **kwargs)

    view.finalize_response, view.permission_denied = finalize_response, permission_denied


def _as_problem(response: Response, view: Any) -> Response:
    """The problem of the closed gate, unless the site has its own form of errors."""
    closed: Closed | None = view.identity_gate_closed
    if closed is not None and response.exception and response.data == {"detail": closed.detail}:
        response.data = closed.problem()
        if response.accepted_renderer.format == "json":
            response.content_type = MEDIA_TYPE
    return response
