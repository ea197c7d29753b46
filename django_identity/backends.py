"""The authentication backend for sessions of the identity sign-in, which end with the consent."""

from collections.abc import Iterator
from copy import copy
from functools import lru_cache, partial
from operator import attrgetter
from typing import Any, ClassVar

from django.conf import settings
from django.contrib import auth
from django.contrib.auth.backends import BaseBackend
from django.db.models import F, Q, QuerySet
from django.db.models.manager import BaseManager
from django.http import HttpRequest
from django.utils import timezone
from django.utils.module_loading import import_string

from django_identity import conf, database
from django_identity.lifecycle.erasure import SESSION_BEGAN_KEY
from django_identity.models import SIGNS_IN, Consent, LinkedIdentity, digest
from django_identity.models.compiled import CompiledQuery

#: The columns of an identity on which a session rests.
RESTS_ON = ("pk", "consent", "linked_via", "application", "environment", "revoked_at")
#: Alias and environment of applications.
Served = tuple[tuple[str, str], ...]
BACKEND_PATH = "django_identity.backends.IdentityBackend"


class IdentityBackend(BaseBackend):
    """Loads the user of a session that began with an identity sign-in.

    It does not authenticate. The callback does, and names this backend for the session. Django
    tells a backend nothing about the session except the user, so each further application needs a
    subclass of its own in ``AUTHENTICATION_BACKENDS``, with the alias in ``application``.
    """

    #: The alias of the application whose sign-ins begin sessions of this backend.
    #: None: of each application without a backend of its own.
    application: ClassVar[str | None] = None

    def get_user(self, user_id: Any) -> Any:
        """The user, if the user is active and has a granted consent. One query.

        Django compares the hash in the session with the user's hash at every request. This
        backend's hash also covers the identity and the time of its last revocation. A session that
        a revocation has ended therefore stays ended after a new consent.
        """
        user = _user_with_consent(user_id, served_by(type(self)))
        if user is None or not user.is_active:
            return None
        path = f"{type(self).__module__}.{type(self).__qualname__}"
        return _resting(user, user.identity_pk, user.identity_revoked_at, path=path)


def revoked_identity(request: HttpRequest) -> LinkedIdentity | None:
    """The identity whose revocation has ended this browser's session, if that is why it ended."""
    if request.user.is_authenticated or not rests_on_identity(request):
        return None
    user_id = auth.get_user_model()._meta.pk.to_python(request.session[auth.SESSION_KEY])
    served = served_at(request.session[auth.BACKEND_SESSION_KEY])
    among = (Q(application=alias, environment=environment) for alias, environment in served)
    revoked = LinkedIdentity.objects.filter(
        Q(*among, _connector=Q.OR), user_id=user_id, consent=Consent.REVOKED
    )
    return revoked.order_by("-revoked_at").first()


def begin_session(request: HttpRequest, user: Any, identity: LinkedIdentity) -> None:
    """Sign the browser in as ``user``, as long as the consent of ``identity`` is granted."""
    path = backend_of(identity.application)
    if len(served_at(path)) == 1:
        # A copy, because the caller's user instance may have a session of another kind too.
        user = _resting(copy(user), identity.pk, identity.revoked_at, path=path)
    auth.login(request, user, backend=path)


def backend_of(alias: str) -> str:
    """The path of the backend for sessions that begin with the application ``alias``."""
    return own_backends().get(alias, BACKEND_PATH)


def own_backends() -> dict[str, str]:
    """Alias -> the path of the backend that serves only this application."""
    found = {path: import_string(path) for path in settings.AUTHENTICATION_BACKENDS}
    return {
        backend.application: path
        for path, backend in found.items()
        if isinstance(backend, type)
        and issubclass(backend, IdentityBackend)
        and backend.application
    }


def served_by(backend: type[IdentityBackend]) -> Served:
    """Alias and environment of the applications whose sessions ``backend`` loads."""
    configured = tuple((each.alias, each.environment) for each in conf.applications())
    if backend.application is not None:
        return tuple(each for each in configured if each[0] == backend.application)
    if len(configured) == 1:
        return configured
    own = own_backends()
    return tuple(each for each in configured if each[0] not in own)


def served_at(path: str) -> Served:
    """The same for the backend with this path."""
    return served_by(import_string(path))


def identity_backends() -> set[str]:
    """The paths of all backends whose sessions end with a consent."""
    return {BACKEND_PATH, *own_backends().values()}


def rests_on_identity(request: HttpRequest) -> bool:
    session = getattr(request, "session", None)
    return session is not None and session.get(auth.BACKEND_SESSION_KEY) in identity_backends()


def end_session(request: HttpRequest) -> bool:
    """Sign the browser out if its session is an identity session. Return whether it was."""
    if not rests_on_identity(request):
        return False
    auth.logout(request)
    return True


def end_unlinked_session(request: HttpRequest) -> bool:
    """End an identity session whose identity was just unlinked. Return whether it ended."""
    is_over = rests_on_identity(request) and not auth.get_user(request).is_authenticated
    return is_over and end_session(request)


def bind_session(*, request: HttpRequest | None, user: Any, **_kwargs: Any) -> None:
    """Receive ``user_logged_in``: date the session; bind one of this backend to the consent.

    A session of another backend gets Django's plain hash, even if the user came from one of ours.
    """
    # Packages that hand out tokens send the signal too, and begin no session.
    session = getattr(request, "session", None)
    if session is None or auth.SESSION_KEY not in session:
        return
    session[SESSION_BEGAN_KEY] = int(timezone.now().timestamp())
    path = session.get(auth.BACKEND_SESSION_KEY)
    bound_to = getattr(user, "identity_backend", None)
    if bound_to == path:
        return
    if bound_to is not None:
        del user.get_session_auth_hash, user.get_session_auth_fallback_hash, user.identity_backend
        session[auth.HASH_SESSION_KEY] = user.get_session_auth_hash()
    if path not in identity_backends():
        return
    loaded = _user_with_consent(user.pk, served_at(path))
    if loaded is not None:
        _resting(user, loaded.identity_pk, loaded.identity_revoked_at, path=path)
        session[auth.HASH_SESSION_KEY] = user.get_session_auth_hash()


def _user_with_consent(user_id: Any, served: Served) -> Any:
    """Return the user with their oldest granted consent among the applications, or None.

    The conditions are checked here, because PostgreSQL plans the query without them in half the
    time.
    """
    manager = auth.get_user_model()._default_manager
    # A custom manager may choose its rows anew at each request.
    found = (
        _compiled(manager.model).instances(user_id)
        if _is_plain(manager)
        else _with_identities(database.users()).filter(pk=user_id)
    )
    granted = (
        user
        for user in found
        if user.identity_consent == Consent.GRANTED
        and user.identity_linked_via in SIGNS_IN
        and (user.identity_application, user.identity_environment) in served
    )
    return min(granted, key=attrgetter("identity_pk"), default=None)


@lru_cache
def _compiled(model: Any) -> CompiledQuery:
    users = model._default_manager
    return CompiledQuery(
        lambda user_id: _with_identities(users.all()).filter(pk=user_id), model._meta.pk
    )


def _is_plain(manager: Any) -> bool:
    """Whether the manager returns all rows of its table, as Django's own do."""
    has_own = type(manager).get_queryset is not BaseManager.get_queryset
    return not has_own and manager._queryset_class is QuerySet


def _with_identities(users: QuerySet[Any]) -> QuerySet[Any]:
    """A row for each identity of each of ``users``, who are annotated with it."""
    columns = {f"identity_{name}": F(f"linked_identities__{name}") for name in RESTS_ON}
    linked: QuerySet[Any] = users.filter(linked_identities__isnull=False).annotate(**columns)
    return linked


def _resting(user: Any, consent: object, revoked_at: object, *, path: str) -> Any:
    """Return ``user`` with a session hash that covers this consent, for the backend ``path``."""
    rests_on = f"{consent}/{revoked_at}"
    user.identity_backend = path
    user.get_session_auth_hash = partial(_hash, user, rests_on)
    user.get_session_auth_fallback_hash = partial(_fallback_hashes, user, rests_on)
    return user


def _hash(user: Any, rests_on: str) -> str:
    return digest(user.__class__.get_session_auth_hash(user), rests_on)


def _fallback_hashes(user: Any, rests_on: str) -> Iterator[str]:
    fallbacks = user.__class__.get_session_auth_fallback_hash(user)
    return (digest(fallback, rests_on) for fallback in fallbacks)
