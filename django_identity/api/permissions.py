"""Gates for Django REST framework: ``permission_classes = [HasClaim("age_over_18")]``."""

from __future__ import annotations

from typing import Any, Self

from rest_framework.permissions import BasePermission, OperationHolderMixin
from rest_framework.request import Request

from django_identity import conf
from django_identity.lifecycle.standing import Requirement, standing_of


class _Permission(OperationHolderMixin, BasePermission):
    """Stands among classes although it is an object: calling it gives itself."""

    def __call__(self) -> Self:
        return self


class HasClaim(_Permission):
    """The claim is proven for the request's user, with that ``value`` if one is asked for."""

    code = "claim_missing"

    def __init__(
        self, claim: str, *, value: str | None = None, application: str = conf.DEFAULT_ALIAS
    ) -> None:
        self._requirement = Requirement(claim, value)
        self._application = application

    def has_permission(self, request: Request, view: Any) -> bool:
        standing = standing_of(request.user, application=self._application)
        return standing.has_claim(self._requirement)


class HasKycLevel(_Permission):
    """The service verified the request's user at ``level`` or above."""

    code = "kyc_level_missing"

    def __init__(self, level: str, *, application: str = conf.DEFAULT_ALIAS) -> None:
        self._level = level
        self._application = application

    def has_permission(self, request: Request, view: Any) -> bool:
        return standing_of(request.user, application=self._application).has_kyc_level(self._level)
