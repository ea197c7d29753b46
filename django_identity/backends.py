"""The authentication backend for sessions of the identity sign-in, which end with the consent.

``lifecycle/ground/sessions.py`` has the ends of a session, and the identity behind it.
"""

from copy import copy
from datetime import datetime
from functools import partial
from typing import Any

from django.contrib import auth
from django.contrib.auth.backends import BaseBackend, ModelBackend
from django.contrib.sessions.backends.base import SessionBase
from django.http import HttpRequest
from django.middleware.csrf import CSRF_SESSION_KEY
from django.utils.crypto import constant_time_compare

from django_identity import database
from django_identity.boundary import boundary
from django_identity.exceptions import ConfigurationError
from django_identity.lifecycle.ground import sessions
from django_identity.lifecycle.standing import shortfalls, standing
from django_identity.models import LinkedIdentity, digest

BACKEND_PATH = "django_identity.backends.IdentityBackend"
NAME_ANOTHER = (
    "This user has no identity that signs in, so name the backend that let them in, such as"
    ' "django.contrib.auth.backends.ModelBackend", as the backend of login().'
)
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


class IdentityBackend(ModelBackend):
    """Loads the user of a session that began with an identity sign-in.

    It only loads users. The callback authenticates, and names this backend for the session.
    Permissions are those of Django's own backend, for a site with this backend alone.
    """

    # Django's own backend would take a password here,
    authenticate: Any = BaseBackend.authenticate
    aauthenticate: Any = BaseBackend.aauthenticate
    # and would load the user without a look at the identity.
    aget_user = BaseBackend.aget_user

    @boundary
    def get_user(self, user_id: Any) -> Any:
        """The user, as the site's default manager has it, if the identity signs in. One query.

        Django compares the hash in the session with the user's hash at every request. This user's
        hash covers the identity and its epoch, which rises with each revocation.
        """
        user, identity = sessions.user_with_identity(user_id)
        # Django keeps the session of nobody, and ``why_session_ended`` looks into it.
        if identity is None or not identity.signs_in:
            return None
        if not self.user_can_authenticate(user):
            return None
        standing.remember(user, identity)
        return bound(user, identity)


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
def bind_session(*, request: HttpRequest | None, user: Any, **_kwargs: Any) -> None:
    """Receive ``user_logged_in``: bind a session of this backend that another app began.

    Raises ``ConfigurationError`` unless ``user`` has an identity that signs in. A session of
    another backend gets Django's plain hash, even if the user was bound before.
    """
    session = getattr(request, "session", None)
    if session is None or not _has_begun(session, user):
        return
    is_ours = session.get(auth.BACKEND_SESSION_KEY) == BACKEND_PATH
    # Not by ``vars``: a request's user is a lazy object around the user.
    is_bound = hasattr(user, "identity_stamp")
    if is_ours == is_bound:
        return

    if is_bound:
        del user.identity_stamp
        del user.get_session_auth_hash
        del user.get_session_auth_fallback_hash
    else:
        _user, identity = sessions.user_with_identity(user.pk)
        if identity is None or not identity.signs_in:
            raise ConfigurationError(NAME_ANOTHER)
        bound(user, identity)
    session[auth.HASH_SESSION_KEY] = user.get_session_auth_hash()


def _has_begun(session: SessionBase, user: Any) -> bool:
    """Whether ``login()`` has just begun this session for ``user``, with the hash of the instance.

    Packages that hand out tokens send the signal too, and begin no session. The browser's session
    is another person's then, or one that must not outlive its epoch.
    """
    if not database.is_account(user):
        return False
    begun_with = session.get(auth.HASH_SESSION_KEY, "")
    return constant_time_compare(begun_with, user.get_session_auth_hash())


@boundary
def _hash(user: Any, stamp: str) -> str:
    # ``__class__``: a request's user is a lazy object.
    return digest(user.__class__.get_session_auth_hash(user), stamp)


@boundary
def _fallback_hashes(user: Any, stamp: str) -> list[str]:
    fallbacks = user.__class__.get_session_auth_fallback_hash(user)
    return [digest(fallback, stamp) for fallback in fallbacks]
