"""The authentication backend for sessions of the identity sign-in, which end with the consent."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, get_user_model, login, logout
from django.contrib.auth.backends import BaseBackend
from django.db.models import OuterRef, Q, QuerySet, Subquery
from django.http import HttpRequest

from django_identity import conf
from django_identity.models import Consent, LinkedIdentity, LinkedVia, digest

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
        oldest = _granted().filter(user_id=OuterRef("pk"))[:1]
        user = (
            get_user_model()
            ._default_manager.annotate(
                identity_consent=Subquery(oldest.values("pk")),
                identity_revoked_at=Subquery(oldest.values("revoked_at")),
            )
            .filter(pk=user_id)
            .first()
        )
        if user is None or not user.is_active or user.identity_consent is None:
            return None
        return _resting(user, user.identity_consent, user.identity_revoked_at)


def begin_session(request: HttpRequest, user: Any, identity: LinkedIdentity) -> None:
    """Sign the browser in as ``user``, for as long as the consent of ``identity`` lasts.

    Under several applications the session may rest on another consent, which is looked up then.
    """
    if len(conf.aliases()) == 1:
        user = _resting(user, identity.pk, identity.revoked_at)
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


def bind_session(*, request: HttpRequest, user: Any, **_kwargs: Any) -> None:
    """Receive ``user_logged_in``: bind a session of this backend to the user's consent."""
    is_ours = request.session.get(BACKEND_SESSION_KEY) == BACKEND_PATH
    if not is_ours or "get_session_auth_hash" in vars(user):
        return
    consent = _granted().filter(user_id=user.pk).values_list("pk", "revoked_at").first()
    if consent is not None:
        request.session[HASH_SESSION_KEY] = _resting(user, *consent).get_session_auth_hash()


def _granted() -> QuerySet[LinkedIdentity]:
    """The granted identities that may sign in, under the configured applications, oldest first."""
    configured = Q()
    for application in conf.applications():
        configured |= Q(application=application.alias, environment=application.environment)
    granted = LinkedIdentity.objects.filter(configured, consent=Consent.GRANTED)
    return granted.filter(linked_via__in=SIGNS_IN).order_by("pk")


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
