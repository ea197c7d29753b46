"""A gate, and whether it is open to a person.

``lifecycle/standing/standing.py`` has the rules, and all that closes a gate.
"""

import inspect
from collections.abc import Callable, Iterable, MutableMapping
from typing import Any

from asgiref.sync import sync_to_async
from django.core.exceptions import ImproperlyConfigured

from django_identity.boundary import boundary
from django_identity.gates.closed import Closed, OnClosed, require_answer
from django_identity.lifecycle.said import scopes
from django_identity.lifecycle.standing import step_up
from django_identity.lifecycle.standing.standing import (
    Standing,
    standing_of,
    standings_of,
)
from django_identity.requirements import (
    NotARequirement,
    RecentSignIn,
    RequiredClaim,
    RequiredLevel,
    RequiredScope,
    Requirement,
)

# The argument of a gate that has one value -> what it asks for.
SINGLE: dict[str, Callable[[Any], Requirement]] = {
    "kyc_level": RequiredLevel,
    "scope": RequiredScope,
    "minutes": RecentSignIn,
}
Session = MutableMapping[str, Any]
Claims = dict[str, bool | str]


class Gate:
    """What a view asks for: claims that must all be proven, a KYC level, a scope or a sign-in.

    A claim is ``"age_over_18"``, which must be true, or ``"country_resident=PT|FR"``, with one of
    these values. ``scope``: what the person must have allowed. ``minutes``: within which the person
    must have come back from the service in this session. ``on_closed`` is ``"redirect"`` (to the
    login page and its explanation), ``"forbid"`` (403), ``"problem"`` (always JSON), or a callable
    that takes the request and a ``Closed`` and returns a response. Raises ``ImproperlyConfigured``
    for an impossible requirement.
    """

    def __init__(
        self,
        *claims: str,
        kyc_level: str = "",
        scope: str = "",
        minutes: float = 0,
        on_closed: OnClosed = "redirect",
    ) -> None:
        arguments = {
            "claims": claims,
            "kyc_level": kyc_level,
            "scope": scope,
            "minutes": minutes,
        }
        try:
            self.requirements = _requirements(arguments)
            require_answer(on_closed)
        except NotARequirement as error:
            raise NotARequirement(error.value, error.rule, place=_place()) from None
        except ImproperlyConfigured as error:
            raise ImproperlyConfigured(f"{_place()}{error}") from None
        self.on_closed = on_closed

    @property
    def asks_of_session(self) -> bool:
        """Whether it asks for a recent sign-in, which only the person's own session can show."""
        return any(isinstance(required, RecentSignIn) for required in self.requirements)

    def __str__(self) -> str:
        return ", ".join(map(describe_requirement, self.requirements))


@boundary
def closed_to(
    gate: Gate,
    user: object,
    *,
    session: Session | None = None,
) -> Closed | None:
    """Why ``gate`` is closed to ``user`` at this moment, or None if it is open.

    ``session``: the request's, without which a gate with ``minutes`` is closed. Raises
    ``ImproperlyConfigured`` for a scope outside the site's settings.
    """
    for requirement in gate.requirements:
        if isinstance(requirement, RequiredScope):
            _require_listed(requirement)
    if not _is_signed_in(user):
        return Closed(gate.requirements[0], shortfall=None)
    standing = standing_of(user)
    return missing_to(gate, standing, session=session)


def _is_signed_in(user: object) -> bool:
    """Whether somebody with an active account is signed in: Django's rule for permissions.

    Some backends, and packages that hand out tokens, let disabled accounts in.
    """
    is_authenticated = getattr(user, "is_authenticated", False)
    return bool(is_authenticated and getattr(user, "is_active", True))


@boundary
async def aclosed_to(
    gate: Gate,
    user: object,
    *,
    session: Session | None = None,
) -> Closed | None:
    """``closed_to`` for async code."""
    return await sync_to_async(closed_to)(gate, user, session=session)


def missing_to(
    gate: Gate,
    standing: Standing,
    *,
    session: Session | None = None,
) -> Closed | None:
    """What somebody with this standing lacks, or None if the gate is open."""
    for requirement in gate.requirements:
        if isinstance(requirement, RecentSignIn):
            shortfall = step_up.shortfall(
                standing,
                session,
                minutes=requirement.minutes,
            )
        else:
            shortfall = standing.shortfall(requirement)
        if shortfall is not None:
            return Closed(requirement, shortfall)
    return None


@boundary
def claims_of(user: object) -> Claims:
    """Claim name -> ``True`` or its text, of every claim that opens a gate at this moment."""
    return standing_of(user).proven_claims()


@boundary
async def aclaims_of(user: object) -> Claims:
    """``claims_of`` for async code. The rest of the request remembers what was read."""
    return await sync_to_async(claims_of)(user)


@boundary
def claims_of_all(users: Iterable[object]) -> dict[Any, Claims]:
    """The key of each user -> ``claims_of``, in two queries for all of them.

    Unsaved users and other models are left out. Gates, ``claims_of`` and the filters then ask about
    the same instances from memory.
    """
    standings = standings_of(users)
    return {key: standing.proven_claims() for key, standing in standings.items()}


def describe_requirement(requirement: Requirement) -> str:
    """For lists of gates, in which a scope and a claim may have the same name."""
    if isinstance(requirement, RequiredScope):
        return f"scope {requirement}"
    if isinstance(requirement, RecentSignIn):
        return f"{requirement} ({requirement.minutes:g} min)"
    return str(requirement)


def _requirements(arguments: dict[str, Any]) -> tuple[Requirement, ...]:
    """What the one given argument asks for."""
    asked = {
        name: value for name, value in arguments.items() if value not in ("", 0, ())
    }
    if not asked:
        raise ImproperlyConfigured(
            "A gate asks for claims, a KYC level, a scope or minutes.",
        )
    if len(asked) > 1:
        named = " and ".join(f"{name} ({value!r})" for name, value in asked.items())
        raise ImproperlyConfigured(
            f"This gate asks for {named}. Write a gate for each.",
        )

    [(name, value)] = asked.items()
    if name == "claims":
        return tuple(RequiredClaim.parse(claim) for claim in value)
    return (SINGLE[name](value),)


def _require_listed(required: RequiredScope) -> None:
    """Gate and service would send the person in a circle for any other scope."""
    if required.scope not in scopes.of_site():
        raise ImproperlyConfigured(
            f"A gate asks for the scope {required.scope!r}, and the site"
            " never does. Add it to LATER_SCOPES, or correct the gate.",
        )


def _place() -> str:
    """File and line of the site's code that makes a gate, or an empty text at a request."""
    frame = inspect.currentframe()
    while frame is not None:
        module = frame.f_globals.get("__name__", "").partition(".")[0]
        if module == "django":
            return ""
        if module != "django_identity":
            return f"{frame.f_code.co_filename}, line {frame.f_lineno}: "
        frame = frame.f_back
    return ""
