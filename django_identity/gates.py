"""Gates: open a view only to people with a proven claim or a KYC level.

::

    @claim_required("age_over_18")
    def bar(request): ...

    @claim_required("country_resident", value="NG", on_closed="forbid")
    async def local_offer(request): ...

    class Vault(KycLevelRequiredMixin, TemplateView):
        required_kyc_level = "level_2"
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import wraps
from inspect import getattr_static, isfunction, signature
from typing import Any

from asgiref.sync import iscoroutinefunction, sync_to_async
from django.contrib.auth.decorators import login_not_required
from django.core.exceptions import ImproperlyConfigured
from django.http import HttpRequest
from django.views import View

from django_identity import conf
from django_identity.lifecycle.standing import (
    UNASKED,
    Requirement,
    Standing,
    Unasked,
    require_text,
    standing_of,
)
from django_identity.texts import labels
from django_identity.views.closed import (
    CLAIM_MISSING,
    KYC_LEVEL_MISSING,
    NOT_SIGNED_IN,
    Closed,
    OnClosed,
    answer,
    keep_private,
)

__all__ = [
    "ClaimRequiredMixin",
    "Closed",
    "Gate",
    "KycLevelRequiredMixin",
    "aclaims_of",
    "claim_required",
    "claims_of",
    "kyc_level_required",
]

# The limit of remembered requirements, in case a gate takes its requirement from the request.
MOST_ASKED = 1000
_asked: set[str] = set()


def note_asked(*asked: object) -> None:
    """Remember the claims and levels that a gate of this site requires."""
    _asked.update(text for text in asked if isinstance(text, str) and len(_asked) < MOST_ASKED)


def was_asked(text: str) -> bool:
    """Whether a gate of this site requires this claim or level. A link may name no other."""
    return text in _asked


@dataclass(frozen=True, slots=True)
class Gate:
    """The requirements of a view: proven claims, a KYC level, or both.

    Raises ``ImproperlyConfigured`` if there is no requirement, or one that is not non-empty text.
    """

    claims: tuple[Requirement, ...] = ()
    kyc_level: str | Unasked = UNASKED
    application: str = conf.DEFAULT_ALIAS
    on_closed: OnClosed = "redirect"

    def __post_init__(self) -> None:
        if not all(isinstance(claim, Requirement) for claim in self.claims):
            raise ImproperlyConfigured("the claims of a gate are Requirements")
        if self.kyc_level is not UNASKED:
            require_text(self.kyc_level, "a KYC level")
        elif not self.claims:
            raise ImproperlyConfigured("a gate that asks for nothing would be open to everybody")
        if self.on_closed not in ("redirect", "forbid") and not callable(self.on_closed):
            raise ImproperlyConfigured('on_closed is "redirect", "forbid" or a callable')
        note_asked(*map(str, self.claims), self.kyc_level)
        labels.note_level(self.kyc_level)


def claim_required(
    *claims: str,
    value: str | Unasked = UNASKED,
    application: str = conf.DEFAULT_ALIAS,
    on_closed: OnClosed = "redirect",
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Open a sync or async view only to people for whom all ``claims`` are proven.

    ``value`` requires this value of a single claim, instead of true. ``on_closed`` is
    ``"redirect"`` (to the login page, which says what is missing and how to get it), ``"forbid"``
    (403) or a callable that takes the request and a ``Closed`` and returns a response. Raises
    ``ImproperlyConfigured`` for arguments that are not non-empty text, such as ``None``.
    """
    return _gated(Gate(_requirements(claims, value), application=application, on_closed=on_closed))


def kyc_level_required(
    level: str, *, application: str = conf.DEFAULT_ALIAS, on_closed: OnClosed = "redirect"
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Open a view only to people whom the service verified at ``level`` or above."""
    return _gated(Gate(kyc_level=level, application=application, on_closed=on_closed))


def claims_of(user: object, *, application: str = conf.DEFAULT_ALIAS) -> dict[str, bool | str]:
    """Claim name -> ``True`` or its text, of every claim that opens a gate at this moment."""
    return standing_of(user, application=application).proven_claims()


async def aclaims_of(
    user: object, *, application: str = conf.DEFAULT_ALIAS
) -> dict[str, bool | str]:
    """``claims_of`` for async code. The rest of the request remembers what was read."""
    return await sync_to_async(claims_of)(user, application=application)


def closed_to(gate: Gate, user: object) -> Closed | None:
    """Why ``gate`` is closed to ``user`` at this moment, or None if it is open."""
    closed = _first_missing(gate, standing_of(user, application=gate.application))
    if closed is None or getattr(user, "is_authenticated", False):
        return closed
    return replace(closed, code=NOT_SIGNED_IN, shortfall=None)


class _GateMixin(View):
    """For class-based views, sync and async. Put it first among the bases.

    The requirements of all classes in the MRO apply. A subclass can only add requirements.
    """

    identity_application: str = conf.DEFAULT_ALIAS
    on_closed: OnClosed = "redirect"

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        claims, value = getattr(cls, "required_claims", ()), getattr(cls, "required_value", UNASKED)
        if isinstance(claims, tuple | list):
            note_asked(*(claim if value is UNASKED else f"{claim}={value}" for claim in claims))
        level = getattr(cls, "required_kyc_level", "") or UNASKED
        note_asked(level)
        labels.note_level(level)

    def get_gate(self) -> Gate:
        """An additional gate for the request. Subclasses may override it."""
        raise NotImplementedError

    @classmethod
    def as_view(cls, **initkwargs: Any) -> Callable[..., Any]:
        return login_not_required(super().as_view(**initkwargs))

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        if self.view_is_async:
            return self._dispatch_async(request, *args, **kwargs)
        if found := _first_closed(tuple(_gates_of(self)), request.user):
            return answer(request, *found)
        return keep_private(super().dispatch(request, *args, **kwargs))

    async def _dispatch_async(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        gates = await sync_to_async(lambda: tuple(_gates_of(self)))()
        if found := await _first_closed_async(gates, request):
            return await sync_to_async(answer)(request, *found)
        return keep_private(await super().dispatch(request, *args, **kwargs))  # type: ignore[misc]  # async view


class ClaimRequiredMixin(_GateMixin):
    """``required_claims`` must be proven. ``required_value`` requires a value of a single claim."""

    required_claims: tuple[str, ...] = ()
    required_value: str | Unasked = UNASKED

    def get_gate(self) -> Gate:
        return Gate(
            _requirements(self.required_claims, self.required_value),
            application=self.identity_application,
            on_closed=_on_closed(self),
        )


class KycLevelRequiredMixin(_GateMixin):
    """The person must be verified at ``required_kyc_level`` or above."""

    required_kyc_level: str = ""

    def get_gate(self) -> Gate:
        return Gate(
            kyc_level=self.required_kyc_level,
            application=self.identity_application,
            on_closed=_on_closed(self),
        )


_OURS = (_GateMixin, ClaimRequiredMixin, KycLevelRequiredMixin)


def _gates_of(view: _GateMixin) -> Iterator[Gate]:
    """All gates of ``view``: those that its classes declare, and those of ``get_gate``.

    Raises ``ImproperlyConfigured`` if a mixin is used without a requirement.
    """
    declared, added = tuple(_declared(view)), tuple(_added(view))
    for mixin, is_asked in (
        (ClaimRequiredMixin, any(gate.claims for gate in declared)),
        (KycLevelRequiredMixin, any(gate.kyc_level is not UNASKED for gate in declared)),
    ):
        if isinstance(view, mixin) and not is_asked and not added:
            raise ImproperlyConfigured(f"{type(view).__name__}: {mixin.__name__} asks for nothing")
    yield from declared
    yield from added


def _declared(view: _GateMixin) -> Iterator[Gate]:
    """A gate for each class that declares a requirement, from the instance to the last base.

    A value belongs to the claim of the same class, or of the nearest class that has a claim. An
    application is inherited; without a requirement it belongs to the next class that has one.
    """
    chosen: dict[str, Any] = {}
    for held, above in _layers(view):
        for name in ("required_value", "identity_application"):
            if name in held:
                chosen.setdefault(name, _bind(view, held[name]))
        claims = _bind(view, held.get("required_claims", ()))
        level = _bind(view, held.get("required_kyc_level", ""))
        if claims == () and level == "":
            continue
        requirements: tuple[Requirement, ...] = ()
        if claims != ():
            value = chosen.pop("required_value", _value_above(view, above))
            if "required_value" in held and value != _bind(view, held["required_value"]):
                raise ImproperlyConfigured(
                    "a subclass cannot replace the value that a base requires"
                )
            requirements = _requirements(claims, value)
        # The last base is ``_GateMixin``, which has an application.
        inherited = next(vars(base) for base in above if "identity_application" in vars(base))
        bound = _bind(view, inherited["identity_application"])
        yield Gate(
            requirements,
            kyc_level=UNASKED if level == "" else level,
            application=chosen.pop("identity_application", bound),
            on_closed=_on_closed(view),
        )


def _added(view: _GateMixin) -> Iterator[Gate]:
    """A gate for each class of the site that overrides ``get_gate``."""
    for held, _above in _layers(view):
        if "get_gate" in held:
            gate = _bind(view, held["get_gate"])()
            if not isinstance(gate, Gate):
                raise ImproperlyConfigured(f"{type(view).__name__}.get_gate() must return a Gate")
            yield gate


def _layers(view: _GateMixin) -> Iterator[tuple[Mapping[str, Any], tuple[type, ...]]]:
    """The own attributes of the instance and of each class of the site, with its bases."""
    yield vars(view), type(view).__mro__
    for owner in type(view).__mro__:
        if owner not in _OURS:
            yield vars(owner), owner.__mro__[1:]


def _value_above(view: _GateMixin, above: tuple[type, ...]) -> Any:
    """The value of a base that declares no claim itself."""
    for base in above:
        if base in _OURS or "required_claims" in vars(base):
            break
        if "required_value" in vars(base):
            return _bind(view, vars(base)["required_value"])
    return UNASKED


def _bind(view: _GateMixin, found: Any) -> Any:
    """A class attribute as the instance sees it, including properties and methods."""
    return found.__get__(view, type(view)) if hasattr(type(found), "__get__") else found


def _on_closed(view: _GateMixin) -> OnClosed:
    """``on_closed``. A function of a request and a ``Closed`` is not bound; a method is."""
    given = getattr_static(view, "on_closed")
    if isfunction(given) and len(signature(given).parameters) < len(("self", "request", "closed")):
        return given
    return view.on_closed


def _requirements(claims: Any, value: str | Unasked) -> tuple[Requirement, ...]:
    if not claims or not isinstance(claims, tuple | list | set | frozenset):
        raise ImproperlyConfigured("name at least one claim, as a list of names")
    if value is not UNASKED and len(claims) != 1:
        raise ImproperlyConfigured("a value belongs to exactly one claim")
    return tuple(Requirement(claim, value) for claim in claims)


def _gated(gate: Gate) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator. Under ``LoginRequiredMiddleware`` the gate answers, and not the middleware."""

    def decorate(view: Callable[..., Any]) -> Callable[..., Any]:
        if iscoroutinefunction(view):

            @wraps(view)
            async def gated_async(request: HttpRequest, /, *args: Any, **kwargs: Any) -> Any:
                if found := await _first_closed_async((gate,), request):
                    return await sync_to_async(answer)(request, *found)
                return keep_private(await view(request, *args, **kwargs))

            return login_not_required(gated_async)

        @wraps(view)
        def gated(request: HttpRequest, /, *args: Any, **kwargs: Any) -> Any:
            if found := _first_closed((gate,), request.user):
                return answer(request, *found)
            return keep_private(view(request, *args, **kwargs))

        return login_not_required(gated)

    return decorate


def _first_closed(gates: Iterable[Gate], user: object) -> tuple[OnClosed, Closed] | None:
    """``on_closed`` of the first gate that is closed to ``user``, and what it misses first."""
    for gate in gates:
        if closed := closed_to(gate, user):
            return gate.on_closed, closed
    return None


async def _first_closed_async(
    gates: Sequence[Gate], request: HttpRequest
) -> tuple[OnClosed, Closed] | None:
    """The same for ``request.auser()`` and ``request.user``: a middleware may replace one alone."""
    user: Any = await request.auser()
    if not hasattr(request, "_cached_user"):
        # Django keeps the session's user there, and so reads it once for both names.
        request._cached_user = user  # type: ignore[attr-defined]
    return await sync_to_async(
        lambda: _first_closed(gates, user) or _first_closed(gates, request.user)
    )()


def _first_missing(gate: Gate, standing: Standing) -> Closed | None:
    for claim in gate.claims:
        if lack := standing.shortfall(claim):
            return Closed(CLAIM_MISSING, claim.claim_type, gate.application, str(claim), lack)
    level = gate.kyc_level
    if level is not UNASKED and (lack := standing.level_shortfall(level)):
        return Closed(KYC_LEVEL_MISSING, level, gate.application, level, lack)
    return None
