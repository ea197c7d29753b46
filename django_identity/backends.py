"""The authentication backend: sessions of the identity sign-in, which end with the consent."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, get_user_model, login, logout
from django.contrib.auth.backends import BaseBackend
from django.db.models import OuterRef, Q, QuerySet, Subquery
from django.http import HttpRequest

from django_identity import conf
from django_identity.models import Consent, LinkedIdentity, digest

BACKEND_PATH = "django_identity.backends.IdentityBackend"


class IdentityBackend(BaseBackend):
    """Loads the user of a session that began with an identity sign-in.

    It never authenticates by itself: the callback does, and names this backend.
    """

    def get_user(self, user_id: Any) -> Any:
        """The user, while they are active and a consent of theirs is granted: one query.

        Django compares a hash in the session with the user's own at every request. Ours also says
        on which consent the session rests and when it was last revoked, so that a session which a
        revocation ended stays ended, though consent be granted anew.
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


def end_session(request: HttpRequest) -> bool:
    """Sign the browser out, if its session began with an identity sign-in and with nothing else."""
    if request.session.get(BACKEND_SESSION_KEY) != BACKEND_PATH:
        return False
    logout(request)
    return True


def bind_session(*, request: HttpRequest, user: Any, **_kwargs: Any) -> None:
    """Receives ``user_logged_in``: binds a session of this backend to the consent it rests on."""
    is_ours = request.session.get(BACKEND_SESSION_KEY) == BACKEND_PATH
    if not is_ours or "get_session_auth_hash" in vars(user):
        return
    consent = _granted().filter(user_id=user.pk).values_list("pk", "revoked_at").first()
    if consent is not None:
        request.session[HASH_SESSION_KEY] = _resting(user, *consent).get_session_auth_hash()


def _granted() -> QuerySet[LinkedIdentity]:
    """The granted identities under the applications that are set up, the oldest first."""
    configured = Q()
    for application in conf.applications():
        configured |= Q(application=application.alias, environment=application.environment)
    return LinkedIdentity.objects.filter(configured, consent=Consent.GRANTED).order_by("pk")


def _resting(user: Any, consent: object, revoked_at: object) -> Any:
    """``user``, whose session hashes rest on that consent from here on."""
    rests_on = f"{consent}/{revoked_at}"
    user.get_session_auth_hash = partial(_hash, user, rests_on)
    user.get_session_auth_fallback_hash = partial(_fallback_hashes, user, rests_on)
    return user


def _hash(user: Any, rests_on: str) -> str:
    return digest(user.__class__.get_session_auth_hash(user), rests_on)


def _fallback_hashes(user: Any, rests_on: str) -> Iterator[str]:
    fallbacks = user.__class__.get_session_auth_fallback_hash(user)
    return (digest(fallback, rests_on) for fallback in fallbacks)
