"""Gates of class-based views."""

from collections.abc import Iterable
from typing import Any

from django.contrib.auth.decorators import login_not_required
from django.core.exceptions import ImproperlyConfigured
from django.views import View

from django_identity.gates.closed import OnClosed
from django_identity.gates.decorators import AnyView, guarded
from django_identity.gates.gate import Gate

# Attribute of a mixin -> the argument of a gate.
ASKS = {
    "required_claims": "claims",
    "required_kyc_level": "kyc_level",
    "required_scope": "scope",
    "recent_sign_in_minutes": "minutes",
}


class GateMixin(View):
    """For class-based views, sync and async. Put it first among the bases.

    What the classes of a view ask for adds up, those of its bases included. Each mixin has its own
    ``dispatch``, because a class between two of them may have one too.
    """

    on_closed: OnClosed = "redirect"

    @classmethod
    def as_view(cls, **initkwargs: Any) -> AnyView:
        return login_not_required(super().as_view(**initkwargs))

    def gates(self) -> list[Gate]:
        """What all classes of the view ask for, the outermost mixin first."""
        gates: list[Gate] = []
        for mixin in type(self).__mro__:
            if mixin.__module__ != __name__:
                continue
            for name in vars(mixin):
                if name in ASKS:
                    gates += self.declared(name)
        return gates

    def declared(self, name: str) -> list[Gate]:
        """The gates that the view and each of its classes ask for by ``name``."""
        gates: list[Gate] = []
        for layer in (self, *type(self).__mro__):
            if name in vars(layer) and layer.__module__ != __name__:
                gates.append(self._gate(layer, name))
        if not gates:
            raise ImproperlyConfigured(f"{type(self).__name__} does not say its {name}")
        return gates

    def _gate(self, layer: Any, name: str) -> Gate:
        value = vars(layer)[name]

        claims: Iterable[str] = ()
        others: dict[str, Any] = {}
        try:
            if name != "required_claims":
                others[ASKS[name]] = value
            elif isinstance(value, tuple | list):
                claims = value
            else:
                raise ImproperlyConfigured(
                    f"It is a tuple or a list of claims, not {value!r}.",
                )
            return Gate(*claims, **others, on_closed=self.on_closed)
        except ImproperlyConfigured as error:
            owner = layer
            if not isinstance(layer, type):
                owner = type(layer)
            where = f"{owner.__module__}.{owner.__qualname__}.{name}"
            raise ImproperlyConfigured(f"{where}: {error}") from None

    def guarded(self, view: AnyView, name: str) -> AnyView:
        return guarded(view, self.declared(name), is_async=self.view_is_async)


class ClaimRequiredMixin(GateMixin):
    """The ``required_claims`` of all classes: ``("age_over_18", "country_resident=PT|FR")``."""

    required_claims: tuple[str, ...] | list[str] = ()

    def dispatch(
        self,
        *args: Any,
        **kwargs: Any,
    ) -> Any:
        return self.guarded(super().dispatch, "required_claims")(*args, **kwargs)


class KycLevelRequiredMixin(GateMixin):
    """The person must be verified at the ``required_kyc_level`` of each class, or above."""

    required_kyc_level: str = ""

    def dispatch(
        self,
        *args: Any,
        **kwargs: Any,
    ) -> Any:
        return self.guarded(super().dispatch, "required_kyc_level")(*args, **kwargs)


class ScopeRequiredMixin(GateMixin):
    """The person must have allowed the ``required_scope`` of each class."""

    required_scope: str = ""

    def dispatch(
        self,
        *args: Any,
        **kwargs: Any,
    ) -> Any:
        return self.guarded(super().dispatch, "required_scope")(*args, **kwargs)


class RecentSignInRequiredMixin(GateMixin):
    """The person must have come back within the ``recent_sign_in_minutes`` of each class."""

    recent_sign_in_minutes: float = 0

    def dispatch(
        self,
        *args: Any,
        **kwargs: Any,
    ) -> Any:
        return self.guarded(super().dispatch, "recent_sign_in_minutes")(*args, **kwargs)
