"""The authentication backend for sessions of the identity sign-in, which end with the consent.

``web/sessions.py`` begins one. ``lifecycle/ground/sessions.py`` has its ends, and the identity
behind it.
"""

from typing import Any

from django.contrib import auth
from django.contrib.auth.backends import BaseBackend, ModelBackend
from django.contrib.sessions.backends.base import SessionBase
from django.http import HttpRequest
from django.utils.crypto import constant_time_compare

from django_identity import database
from django_identity.boundary import boundary
from django_identity.exceptions import ConfigurationError
from django_identity.lifecycle.ground import sessions
from django_identity.lifecycle.standing import standing
from django_identity.web.sessions import BACKEND_PATH, bound, drop_ended_session

__all__ = ["BACKEND_PATH", "IdentityBackend", "bind_session", "drop_ended_session"]

NAME_ANOTHER = (
    "This user has no identity that signs in, so name the backend that let them in, such as"
    ' "django.contrib.auth.backends.ModelBackend", as the backend of login().'
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
