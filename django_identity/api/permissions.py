"""Gates for Django REST framework: ``permission_classes = [HasClaim("age_over_18")]``."""

from typing import Any, ClassVar

from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from django_identity.gates import Gate, closed_to
from django_identity.web.pages import NEVER_CACHED

# No cache may store what a gate answers. A view's own ``Cache-Control`` gives way to this one.
PRIVATE = {"Cache-Control": NEVER_CACHED, "Vary": "Accept, Authorization, Cookie"}
MEMBERS = ("detail", "code", "missing", "recovery")


class GatePermission(BasePermission):
    """``message`` and ``code`` say what a closed gate misses; Django REST framework answers them.

    It asks the same about an object and about the request, so ``~`` negates both alike.
    """

    gate: ClassVar[Gate]

    def has_permission(self, request: Request, view: Any) -> bool:
        getattr(view, "headers", {}).update(PRIVATE)
        session = getattr(request, "session", None)
        closed = closed_to(self.gate, request.user, session=session)
        if closed is None:
            return True
        problem = closed.problem()
        self.message = {name: problem[name] for name in MEMBERS}
        self.code = closed.code
        return False

    def has_object_permission(self, request: Request, view: Any, obj: object) -> bool:
        return self.has_permission(request, view)


def _permission(name: str, gate: Gate) -> type[BasePermission]:
    return type(name, (GatePermission,), {"gate": gate})


def HasClaim(
    *claims: str,
) -> type[BasePermission]:
    """A class of permissions: all ``claims`` are proven for the request's user."""
    return _permission("HasClaim", Gate(*claims))


def HasKycLevel(
    level: str,
) -> type[BasePermission]:
    """A class of permissions: the request's user is verified at ``level`` or above."""
    return _permission("HasKycLevel", Gate(kyc_level=level))


def HasScope(
    scope: str,
) -> type[BasePermission]:
    """A class of permissions: the request's user has allowed ``scope``."""
    return _permission("HasScope", Gate(scope=scope))


def HasRecentSignIn(
    minutes: float = 10,
) -> type[BasePermission]:
    """A class of permissions: the person came back from the service in this session lately."""
    return _permission("HasRecentSignIn", Gate(minutes=minutes))
