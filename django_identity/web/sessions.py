"""The browser's session of the identity sign-in: how it begins, and what its end leaves.

``backends`` loads its user at every request. ``lifecycle/ground/sessions.py`` has what ends it.
"""

from copy import copy
from datetime import datetime
from functools import partial
from typing import Any

from django.contrib import auth
from django.http import HttpRequest
from django.middleware.csrf import CSRF_SESSION_KEY

from django_identity.boundary import boundary
from django_identity.lifecycle.ground import sessions
from django_identity.lifecycle.standing import shortfalls
from django_identity.models import LinkedIdentity, digest

BACKEND_PATH = "django_identity.backends.IdentityBackend"
#: Of a session that ended: whose it was, how long the cookie lives, and what forms are checked by.
KEPT_KEYS = frozenset(
    {
        auth.SESSION_KEY,
        auth.BACKEND_SESSION_KEY,
        auth.HASH_SESSION_KEY,
        CSRF_SESSION_KEY,
        "_session_expiry",
    },
)


def bound(user: Any, identity: LinkedIdentity) -> Any:
    """``user`` with a session hash that ends when the identity's epoch rises.

    Bind before ``login()``, with the identity as the transaction of the sign-in read it.
    """
    stamp = sessions.mark_of(identity)
    user.identity_stamp = stamp
    user.get_session_auth_hash = partial(_hash, user, stamp)
    user.get_session_auth_fallback_hash = partial(_fallback_hashes, user, stamp)
    return user


def begin_session(request: HttpRequest, user: Any, identity: LinkedIdentity) -> None:
    """Sign the browser in as ``user``, until the epoch of ``identity`` rises."""
    # A copy, because the caller's user instance may have a session of another kind too.
    user = bound(copy(user), identity)
    auth.login(request, user, backend=BACKEND_PATH)


def rests_on_identity(request: HttpRequest) -> bool:
    """Whether this browser's session began with an identity sign-in."""
    session = getattr(request, "session", None)
    return session is not None and session.get(auth.BACKEND_SESSION_KEY) == BACKEND_PATH


def why_session_ended(request: HttpRequest) -> tuple[str, datetime | None]:
    """Why and when this browser's session ended: a revocation's reason, or ``"erased"``.

    The reason is empty unless a revocation or an erasure ended the session.
    """
    if request.user.is_authenticated or not rests_on_identity(request):
        return "", None
    return shortfalls.why_session_ended(request.session[auth.SESSION_KEY])


def drop_ended_session(request: HttpRequest) -> None:
    """Delete the content of an ended identity session, except the reason of its end.

    Django deletes a session with a wrong hash. It keeps the session of a missing user, and the
    browser's next user would read the person's data.
    """
    # Not ``request.user``: to an API for tokens alone nobody is there, whatever the session says.
    if not rests_on_identity(request) or auth.get_user(request).is_authenticated:
        return
    for name in request.session.keys() - KEPT_KEYS:
        del request.session[name]


def end_disconnected_session(request: HttpRequest) -> bool:
    """End an identity session whose identity was just disconnected. Return whether it ended."""
    if not rests_on_identity(request) or auth.get_user(request).is_authenticated:
        return False
    auth.logout(request)
    return True


@boundary
def _hash(user: Any, stamp: str) -> str:
    # ``__class__``: a request's user is a lazy object.
    return digest(user.__class__.get_session_auth_hash(user), stamp)


@boundary
def _fallback_hashes(user: Any, stamp: str) -> list[str]:
    fallbacks = user.__class__.get_session_auth_fallback_hash(user)
    return [digest(fallback, stamp) for fallback in fallbacks]
