"""Gates: open a view only to people with proven claims, a KYC level, a scope or a fresh sign-in.

``lifecycle/standing.py`` (for a fresh sign-in ``step_up.py``) says which is closed, and why::

    @claim_required("age_over_18")
    def bar(request): ...

    @claim_required("age_over_18", "country_resident=NG", on_closed="forbid")
    async def local_offer(request): ...

    class Vault(KycLevelRequiredMixin, TemplateView):
        required_kyc_level = "level_2"

    @recent_sign_in_required(minutes=10)
    def payout(request): ...
"""

from collections.abc import Callable, MutableMapping
from functools import wraps
from inspect import iscoroutine
from typing import Any

from asgiref.sync import iscoroutinefunction, sync_to_async
from django.contrib.auth.decorators import login_not_required
from django.core.exceptions import ImproperlyConfigured
from django.http import HttpRequest
from django.views import View

from django_identity import conf
from django_identity.lifecycle import step_up
from django_identity.lifecycle.requirements import Requirement, require_text
from django_identity.lifecycle.standing import Shortfall, Standing, standing_of
from django_identity.texts.labels import RECENT_SIGN_IN
from django_identity.views.closed import Closed as Closed
from django_identity.views.closed import OnClosed, answer, keep_private

#: How the attributes begin by which a view names its gates.
ATTRIBUTE = "_identity_gate_"

Session = MutableMapping[str, Any]
Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


class Gate:
    """What a view asks for: claims that must all be proven, a KYC level, a scope or a sign-in.

    A claim is ``"age_over_18"``, which must be true, or ``"country_resident=NG"``. ``scope``: what
    the person must have allowed. ``minutes``: within which the person must have come back from the
    service in this session. ``on_closed`` is ``"redirect"`` (to the login page, which says what is
    missing), ``"forbid"`` (403), or a callable that takes the request and a ``Closed`` and returns
    a response. Raises ``ImproperlyConfigured`` if nothing is asked, or what is not non-empty text.
    """

    def __init__(
        self,
        *claims: str,
        kyc_level: str = "",
        scope: str = "",
        minutes: float = 0,
        application: str = conf.DEFAULT_ALIAS,
        on_closed: OnClosed = "redirect",
    ) -> None:
        if [bool(claims), kyc_level != "", scope != "", minutes != 0].count(True) != 1:
            raise ImproperlyConfigured("a gate asks for claims, a KYC level, a scope or minutes")
        for text, what in ((kyc_level, "a KYC level"), (scope, "a scope")):
            if text != "":
                require_text(text, what)
        if type(minutes) not in (int, float) or minutes < 0:
            raise ImproperlyConfigured("minutes is a positive number")
        if on_closed not in ("redirect", "forbid") and not callable(on_closed):
            raise ImproperlyConfigured('on_closed is "redirect", "forbid" or a callable')
        self.claims = tuple(map(Requirement.parse, claims))
        kept = conf.kept_claims(application)
        if kept is not None and (dropped := {each.claim_type for each in self.claims} - {*kept}):
            raise ImproperlyConfigured(f"KEEP_CLAIMS drops {', '.join(sorted(dropped))}")
        self.kyc_level, self.scope, self.minutes = kyc_level, scope, minutes
        self.application, self.on_closed = application, on_closed

    def __str__(self) -> str:
        if self.minutes:
            return f"{RECENT_SIGN_IN} ({self.minutes} min)"
        return self.kyc_level or self.scope or ", ".join(map(str, self.claims))


def closed_to(gate: Gate, user: object, *, session: Session | None = None) -> Closed | None:
    """Why ``gate`` is closed to ``user`` at this moment, or None if it is open.

    ``session``: the request's, without which a gate with ``minutes`` is closed.
    """
    standing = standing_of(user, application=gate.application)
    code, asked, shortfall = missing_to(gate, standing, session=session)
    if shortfall is None:
        return None
    if not getattr(user, "is_authenticated", False):
        code, shortfall = "not_signed_in", None
    return Closed(code, asked, gate.application, shortfall)


def missing_to(
    gate: Gate, standing: Standing, *, session: Session | None = None
) -> tuple[str, str, Shortfall | None]:
    """Code, what is asked for, and why the gate is closed with this standing, if it is."""
    if gate.minutes:
        shortfall = step_up.shortfall(standing, session, minutes=gate.minutes)
        return "sign_in_not_recent", RECENT_SIGN_IN, shortfall
    if gate.scope:
        return "scope_missing", gate.scope, standing.scope_shortfall(gate.scope)
    if gate.kyc_level:
        return "kyc_level_missing", gate.kyc_level, standing.level_shortfall(gate.kyc_level)
    first = next((each for each in gate.claims if standing.shortfall(each)), gate.claims[0])
    return "claim_missing", str(first), standing.shortfall(first)


def claim_required(
    *claims: str, application: str = conf.DEFAULT_ALIAS, on_closed: OnClosed = "redirect"
) -> Decorator:
    """Open a sync or async view only to people for whom all ``claims`` are proven."""
    return _decorator(Gate(*claims, application=application, on_closed=on_closed))


def kyc_level_required(
    level: str, *, application: str = conf.DEFAULT_ALIAS, on_closed: OnClosed = "redirect"
) -> Decorator:
    """Open a sync or async view only to people verified at ``level`` or above."""
    return _decorator(Gate(kyc_level=level, application=application, on_closed=on_closed))


def scope_required(
    scope: str, *, application: str = conf.DEFAULT_ALIAS, on_closed: OnClosed = "redirect"
) -> Decorator:
    """Open a sync or async view only to people who have allowed ``scope`` (of ``LATER_SCOPES``)."""
    return _decorator(Gate(scope=scope, application=application, on_closed=on_closed))


def recent_sign_in_required(
    minutes: float = 10, *, application: str = conf.DEFAULT_ALIAS, on_closed: OnClosed = "redirect"
) -> Decorator:
    """Open a view only to people who came back from the service lately in this session.

    The service may not ask them for a password again.
    """
    return _decorator(Gate(minutes=minutes, application=application, on_closed=on_closed))


def claims_of(user: object, *, application: str = conf.DEFAULT_ALIAS) -> dict[str, bool | str]:
    """Claim name -> ``True`` or its text, of every claim that opens a gate at this moment."""
    return standing_of(user, application=application).proven_claims()


async def aclaims_of(
    user: object, *, application: str = conf.DEFAULT_ALIAS
) -> dict[str, bool | str]:
    """``claims_of`` for async code. The rest of the request remembers what was read."""
    return await sync_to_async(claims_of)(user, application=application)


class GateMixin(View):
    """For class-based views, sync and async. Put it first among the bases.

    What the classes of a view ask for adds up: a subclass takes nothing away. Each class asks about
    its own ``identity_application``. Each mixin has its own ``dispatch``, because a class between
    two of them may have one too.
    """

    identity_application: str = conf.DEFAULT_ALIAS
    on_closed: OnClosed = "redirect"

    @classmethod
    def as_view(cls, **initkwargs: Any) -> Callable[..., Any]:
        return login_not_required(super().as_view(**initkwargs))

    def gates(self) -> list[Gate]:
        """What all classes of the view ask for, the outermost mixin first."""
        ours = [each for each in type(self).__mro__ if each.__module__ == __name__]
        names = [name for each in ours for name in vars(each) if name in ASKS]
        return [gate for name in names for gate in self.declared(name)]

    def declared(self, name: str) -> list[Gate]:
        """The gates that the view and each of its classes ask for by ``name``."""
        layers = [each for each in (self, *type(self).__mro__) if name in vars(each)]
        layers = [each for each in layers if each.__module__ != __name__]
        if not layers:
            raise ImproperlyConfigured(f"{type(self).__name__} does not say its {name}")
        gates = []
        for layer in layers:
            alias = getattr(layer, "identity_application", self.identity_application)
            gates.append(ASKS[name](vars(layer)[name], application=alias, on_closed=self.on_closed))
        return gates

    def guarded(self, view: Callable[..., Any], name: str) -> Callable[..., Any]:
        return _guarded(view, self.declared(name), is_async=self.view_is_async)


class ClaimRequiredMixin(GateMixin):
    """The ``required_claims`` of all classes: ``("age_over_18", "country_resident=NG")``."""

    required_claims: tuple[str, ...] | list[str] = ()

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        return self.guarded(super().dispatch, "required_claims")(request, *args, **kwargs)


class KycLevelRequiredMixin(GateMixin):
    """The person must be verified at the ``required_kyc_level`` of each class, or above."""

    required_kyc_level: str = ""

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        return self.guarded(super().dispatch, "required_kyc_level")(request, *args, **kwargs)


class ScopeRequiredMixin(GateMixin):
    """The person must have allowed the ``required_scope`` of each class."""

    required_scope: str = ""

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        return self.guarded(super().dispatch, "required_scope")(request, *args, **kwargs)


class RecentSignInRequiredMixin(GateMixin):
    """The person must have come back within the ``recent_sign_in_minutes`` of each class."""

    recent_sign_in_minutes: float = 0

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        return self.guarded(super().dispatch, "recent_sign_in_minutes")(request, *args, **kwargs)


def _claims_gate(claims: object, **rest: Any) -> Gate:
    if not isinstance(claims, tuple | list):
        raise ImproperlyConfigured("required_claims is a tuple or a list of claims")
    return Gate(*claims, **rest)


# Attribute of a mixin -> the gate that it asks for.
ASKS: dict[str, Callable[..., Gate]] = {
    "required_claims": _claims_gate,
    "required_kyc_level": lambda level, **rest: Gate(kyc_level=level, **rest),
    "required_scope": lambda scope, **rest: Gate(scope=scope, **rest),
    "recent_sign_in_minutes": lambda minutes, **rest: Gate(minutes=minutes, **rest),
}


def _decorator(gate: Gate) -> Decorator:
    """Under ``LoginRequiredMiddleware`` the gate answers, and not the middleware."""

    def decorate(view: Callable[..., Any]) -> Callable[..., Any]:
        return login_not_required(_guarded(view, [gate], is_async=iscoroutinefunction(view)))

    return decorate


def _guarded(view: Callable[..., Any], gates: list[Gate], *, is_async: bool) -> Callable[..., Any]:
    """``view`` behind ``gates``. Caches keep nothing of what they answer.

    The map of gates reads them from its attributes. Each has a name of its own, because the
    attributes of several decorators are merged.
    """

    @wraps(view)
    async def gated_async(request: HttpRequest, /, *args: Any, **kwargs: Any) -> Any:
        user = await request.auser()
        if found := await sync_to_async(_first_closed)(gates, request, user):
            return await sync_to_async(answer)(request, *found)
        return keep_private(await view(request, *args, **kwargs))

    @wraps(view)
    def gated(request: HttpRequest, /, *args: Any, **kwargs: Any) -> Any:
        if found := _first_closed(gates, request, request.user):
            return answer(request, *found)
        response = view(request, *args, **kwargs)
        if iscoroutine(response):
            response.close()
            raise ImproperlyConfigured("a sync gate stands around an async view: use a mixin")
        return keep_private(response)

    guarded: Any = gated_async if is_async else gated
    vars(guarded).update((f"{ATTRIBUTE}{id(gate)}", gate) for gate in gates)
    return guarded  # type: ignore[no-any-return]


def _first_closed(
    gates: list[Gate], request: HttpRequest, user: object
) -> tuple[OnClosed, Closed] | None:
    session = getattr(request, "session", None)
    # A middleware may have replaced one of ``request.user`` and ``request.auser`` alone.
    for each in [user] if user == request.user else [user, request.user]:
        for gate in gates:
            if closed := closed_to(gate, each, session=session):
                return gate.on_closed, closed
    return None
