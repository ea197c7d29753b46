"""Gates: views that open on a proven claim or a KYC level, and what a closed one answers.

::

    @claim_required("age_over_18")
    def bar(request): ...

    @claim_required("country_resident", value="NG", on_closed="forbid")
    async def local_offer(request): ...

    class Vault(KycLevelRequiredMixin, TemplateView):
        required_kyc_level = "level_2"
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import wraps
from inspect import iscoroutinefunction
from typing import Any, Literal

from asgiref.sync import sync_to_async
from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.core.exceptions import ImproperlyConfigured
from django.http import HttpRequest, HttpResponse, HttpResponseBase, JsonResponse
from django.shortcuts import redirect, render
from django.views import View

from django_identity import conf
from django_identity.lifecycle.standing import (
    Requirement,
    Shortfall,
    Standing,
    standing_of,
)
from django_identity.views.addresses import login_url

User = AbstractBaseUser | AnonymousUser
OnClosed = Literal["redirect", "forbid"] | Callable[[HttpRequest, "Closed"], HttpResponseBase]

NOT_SIGNED_IN = "not_signed_in"
CLAIM_MISSING = "claim_missing"
KYC_LEVEL_MISSING = "kyc_level_missing"


@dataclass(frozen=True, slots=True)
class Gate:
    """What a view asks for: proven claims, a KYC level, or both."""

    claims: tuple[Requirement, ...] = ()
    kyc_level: str | None = None
    application: str = conf.DEFAULT_ALIAS
    on_closed: OnClosed = "redirect"


@dataclass(frozen=True, slots=True)
class Closed:
    """Why a gate is closed: a stable ``code``, and the claim or the level that is missing.

    ``asked`` is that claim with the value that was asked for (``"country_resident=NG"``);
    ``shortfall`` says what keeps the gate closed to a person who is signed in.
    """

    code: str
    missing: str
    application: str
    asked: str = ""
    shortfall: Shortfall | None = None


def claim_required(
    *claims: str,
    value: str | None = None,
    application: str = conf.DEFAULT_ALIAS,
    on_closed: OnClosed = "redirect",
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Open a view, sync or async, only to a person for whom every one of ``claims`` is proven.

    ``value`` asks for that value of a single claim instead of plain truth. ``on_closed`` is
    ``"redirect"`` (to the page that says what is missing and how to get it), ``"forbid"`` (403) or
    a callable that takes the request and a ``Closed`` and returns a response.
    """
    gate = Gate(_requirements(claims, value), application=application, on_closed=on_closed)
    return _gated(gate)


def kyc_level_required(
    level: str, *, application: str = conf.DEFAULT_ALIAS, on_closed: OnClosed = "redirect"
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Open a view only to a person whom the service verified at ``level`` or above."""
    return _gated(Gate(kyc_level=level, application=application, on_closed=on_closed))


def claims_of(user: User, *, application: str = conf.DEFAULT_ALIAS) -> dict[str, Any]:
    """Claim name -> value of every claim of ``user`` that is proven at this moment."""
    return standing_of(user, application=application).proven_claims()


class _GateMixin(View):
    """For class-based views, sync and async; put it first among the bases."""

    identity_application: str = conf.DEFAULT_ALIAS
    on_closed: OnClosed = "redirect"

    def get_gate(self) -> Gate:
        """What this view asks for; a subclass may decide it for each request."""
        raise NotImplementedError

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        if self.view_is_async:
            return self._dispatch_async(request, *args, **kwargs)
        closed = _verdict(self.get_gate(), request.user)
        if closed is None:
            return super().dispatch(request, *args, **kwargs)
        return _answer(request, self.get_gate(), closed)

    async def _dispatch_async(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        closed = await sync_to_async(_verdict)(self.get_gate(), await request.auser())
        if closed is None:
            return await super().dispatch(request, *args, **kwargs)  # type: ignore[misc]  # async view
        return await sync_to_async(_answer)(request, self.get_gate(), closed)


class ClaimRequiredMixin(_GateMixin):
    """``required_claims`` must be proven; ``required_value`` asks for a value of a single one."""

    required_claims: tuple[str, ...] = ()
    required_value: str | None = None

    def get_gate(self) -> Gate:
        requirements = _requirements(tuple(self.required_claims), self.required_value)
        return Gate(requirements, application=self.identity_application, on_closed=self.on_closed)


class KycLevelRequiredMixin(_GateMixin):
    """The person must be verified at ``required_kyc_level`` or above."""

    required_kyc_level: str = ""

    def get_gate(self) -> Gate:
        if not self.required_kyc_level:
            raise ImproperlyConfigured("required_kyc_level is not set")
        return Gate(
            kyc_level=self.required_kyc_level,
            application=self.identity_application,
            on_closed=self.on_closed,
        )


def _requirements(claims: tuple[str, ...], value: str | None) -> tuple[Requirement, ...]:
    if not claims or not all(claims):
        raise ImproperlyConfigured("name at least one claim, as a list of names")
    if value is None:
        return tuple(Requirement(claim) for claim in claims)
    if len(claims) != 1:
        raise ImproperlyConfigured("a value belongs to exactly one claim")
    return (Requirement(claims[0], value),)


def _gated(gate: Gate) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def decorate(view: Callable[..., Any]) -> Callable[..., Any]:
        if iscoroutinefunction(view):

            @wraps(view)
            async def gated_async(request: HttpRequest, /, *args: Any, **kwargs: Any) -> Any:
                closed = await sync_to_async(_verdict)(gate, await request.auser())
                if closed is None:
                    return await view(request, *args, **kwargs)
                return await sync_to_async(_answer)(request, gate, closed)

            return gated_async

        @wraps(view)
        def gated(request: HttpRequest, /, *args: Any, **kwargs: Any) -> Any:
            closed = _verdict(gate, request.user)
            if closed is None:
                return view(request, *args, **kwargs)
            return _answer(request, gate, closed)

        return gated

    return decorate


def _verdict(gate: Gate, user: User) -> Closed | None:
    """None if the gate is open, else why it is not: the first thing that is missing."""
    closed = _first_missing(gate, standing_of(user, application=gate.application))
    if closed is None or user.is_authenticated:
        return closed
    return replace(closed, code=NOT_SIGNED_IN, shortfall=None)


def _first_missing(gate: Gate, standing: Standing) -> Closed | None:
    for claim in gate.claims:
        if lack := standing.shortfall(claim):
            return Closed(CLAIM_MISSING, claim.claim_type, gate.application, str(claim), lack)
    level = gate.kyc_level
    if level is not None and (lack := standing.level_shortfall(level)):
        return Closed(KYC_LEVEL_MISSING, level, gate.application, level, lack)
    return None


def _answer(request: HttpRequest, gate: Gate, closed: Closed) -> HttpResponseBase:
    if callable(gate.on_closed):
        return gate.on_closed(request, closed)
    status = 401 if closed.code == NOT_SIGNED_IN else 403
    if request.get_preferred_type(["text/html", "application/json"]) == "application/json":
        body = {"error": {"code": closed.code, "missing": closed.missing}}
        return JsonResponse(body, status=status)
    application = conf.application(closed.application)
    next_url = request.get_full_path() if request.method in ("GET", "HEAD") else ""
    way_in = login_url(application, next_url=next_url, missing=closed.asked)
    if gate.on_closed == "forbid":
        return _explained(request, closed, {"way_in": way_in, "next": next_url})
    if request.headers.get("HX-Request") == "true":
        return HttpResponse(status=204, headers={"HX-Redirect": way_in})
    return redirect(way_in)


def _explained(request: HttpRequest, closed: Closed, ways: dict[str, str]) -> HttpResponse:
    """The page that says which proof is missing, why, and how to get it."""
    application = conf.application(closed.application)
    context = {"closed": closed, "application": application, **ways}
    response = render(request, "django_identity/gate_closed.html", context, status=403)
    response["Cache-Control"] = "no-store"
    return response
