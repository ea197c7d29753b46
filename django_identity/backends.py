"""The authentication backend for sessions of the identity sign-in, which end with the consent."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from functools import lru_cache, partial
from typing import Any

from django.contrib.auth import (
    BACKEND_SESSION_KEY,
    HASH_SESSION_KEY,
    get_user,
    get_user_model,
    login,
    logout,
)
from django.contrib.auth.backends import BaseBackend
from django.db.models import F, FilteredRelation, Q, QuerySet
from django.db.models.manager import BaseManager
from django.http import HttpRequest

from django_identity import conf
from django_identity.models import Consent, LinkedIdentity, LinkedVia, digest
from django_identity.models.compiled import CompiledQuery, Given

RELATION = "linked_identities"
NO_USER = (None, None, None)
BACKEND_PATH = "django_identity.backends.IdentityBackend"
SIGNS_IN = (LinkedVia.OAUTH, LinkedVia.SIGN_UP)


class IdentityBackend(BaseBackend):
    """Loads the user of a session that began with an identity sign-in.

    It does not authenticate. The callback does, and names this backend for the session.
    """

    def get_user(self, user_id: Any) -> Any:
        """The user, if the user is active and has a granted consent. One query.

        Django compares the hash in the session with the user's hash at every request. This
        backend's hash also covers the identity and the time of its last revocation. A session that
        a revocation has ended therefore stays ended after a new consent.
        """
        user, consent, revoked_at = _user_with_consent(user_id)
        if user is None or not user.is_active or consent is None:
            return None
        return _resting(user, consent, revoked_at)


def begin_session(request: HttpRequest, user: Any, identity: LinkedIdentity) -> None:
    """Sign the browser in as ``user``, as long as the consent of ``identity`` is granted.

    With several applications the session may depend on another consent, which is looked up then.
    """
    if len(conf.aliases()) == 1:
        # A copy, because the caller's user instance may have a session of another kind too.
        user = _resting(copy(user), identity.pk, identity.revoked_at)
    login(request, user, backend=BACKEND_PATH)


def rests_on_identity(request: HttpRequest) -> bool:
    """Whether the browser has an identity session."""
    session = getattr(request, "session", None)
    return session is not None and session.get(BACKEND_SESSION_KEY) == BACKEND_PATH


def end_session(request: HttpRequest) -> bool:
    """Sign the browser out if its session is an identity session. Return whether it was."""
    if not rests_on_identity(request):
        return False
    logout(request)
    return True


def end_unlinked_session(request: HttpRequest) -> bool:
    """End an identity session whose identity was just unlinked. Return whether it ended."""
    if not rests_on_identity(request) or get_user(request).is_authenticated:
        return False
    logout(request)
    return True


def bind_session(*, request: HttpRequest, user: Any, **_kwargs: Any) -> None:
    """Receive ``user_logged_in``: bind a session of this backend to the user's consent.

    A session of another backend gets Django's plain hash, even if the user came from one of ours.
    """
    is_bound = isinstance(getattr(user, "get_session_auth_hash", None), partial)
    if request.session.get(BACKEND_SESSION_KEY) != BACKEND_PATH:
        if is_bound:
            del user.get_session_auth_hash, user.get_session_auth_fallback_hash
            request.session[HASH_SESSION_KEY] = user.get_session_auth_hash()
        return
    if is_bound:
        return
    consent = _granted().filter(user_id=user.pk).values_list("pk", "revoked_at").first()
    if consent is not None:
        request.session[HASH_SESSION_KEY] = _resting(user, *consent).get_session_auth_hash()


def _user_with_consent(user_id: Any) -> tuple[Any, Any, Any]:
    """Return the user, their oldest consent, and when it was last revoked."""
    manager, applications = get_user_model()._default_manager, _configured()
    if not applications:
        return NO_USER
    # A custom manager may choose its rows anew at each request.
    if not _is_plain(manager):
        user = _with_consent(manager.all()).filter(pk=user_id).first()
        return (user, user.identity_consent, user.identity_revoked_at) if user else NO_USER
    using = manager.db
    query, names = _compiled(manager.model, using, applications)
    for *values, consent, revoked_at in query.rows(user_id):
        return manager.model.from_db(using, names, values), consent, revoked_at
    return NO_USER


@lru_cache
def _compiled(
    model: Any, using: str, _applications: tuple[tuple[str, str], ...]
) -> tuple[CompiledQuery, list[str]]:
    """Compile the query. It contains the applications, so other settings need another query."""
    names = [field.attname for field in model._meta.concrete_fields]

    def build(user_id: Given) -> QuerySet[Any, Any]:
        users = _with_consent(model._default_manager.using(using)).filter(pk=user_id)
        return users.values_list(*names, "identity_consent", "identity_revoked_at")

    return CompiledQuery(build, model._meta.pk, using), names


def _is_plain(manager: Any) -> bool:
    """Whether the manager returns all rows of its table, as Django's own do."""
    has_own = type(manager).get_queryset is not BaseManager.get_queryset
    return not has_own and manager._queryset_class is QuerySet


def _with_consent(users: QuerySet[Any]) -> QuerySet[Any]:
    """Annotate ``users``; a user with several consents has several rows, oldest consent first."""
    granted = FilteredRelation(RELATION, condition=_counts(f"{RELATION}__"))
    joined: QuerySet[Any] = users.annotate(
        granted_identity=granted,
        identity_consent=F("granted_identity__pk"),
        identity_revoked_at=F("granted_identity__revoked_at"),
    )
    return joined.order_by("identity_consent")


def _granted() -> QuerySet[LinkedIdentity]:
    """The granted identities that may sign in, under the configured applications, oldest first."""
    return LinkedIdentity.objects.filter(_counts()).order_by("pk")


def _counts(prefix: str = "") -> Q:
    """Whether an identity is granted and may sign in, under a configured application."""
    applications = Q()
    for alias, environment in _configured():
        named = {f"{prefix}application": alias, f"{prefix}environment": environment}
        applications |= Q(**named)
    may_sign_in = {f"{prefix}consent": Consent.GRANTED, f"{prefix}linked_via__in": SIGNS_IN}
    return Q(applications, **may_sign_in)


def _configured() -> tuple[tuple[str, str], ...]:
    return tuple((each.alias, each.environment) for each in conf.applications())


def _resting(user: Any, consent: object, revoked_at: object) -> Any:
    """Return ``user`` with a session hash that covers this consent."""
    rests_on = f"{consent}/{revoked_at}"
    user.get_session_auth_hash = partial(_hash, user, rests_on)
    user.get_session_auth_fallback_hash = partial(_fallback_hashes, user, rests_on)
    return user


def _hash(user: Any, rests_on: str) -> str:
    return digest(user.__class__.get_session_auth_hash(user), rests_on)


def _fallback_hashes(user: Any, rests_on: str) -> Iterator[str]:
    fallbacks = user.__class__.get_session_auth_fallback_hash(user)
    return (digest(fallback, rests_on) for fallback in fallbacks)
