"""Sessions of the identity sign-in: one query, bound to the consent, and no other session's."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth import get_user, login, user_logged_in
from django.contrib.auth.models import AnonymousUser, User, UserManager
from django.contrib.sessions.backends.db import SessionStore
from django.http import HttpRequest, HttpResponse
from django.test import Client, RequestFactory, override_settings
from django.urls import path
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from django_identity.backends import BACKEND_PATH, IdentityBackend
from django_identity.models import Consent, LinkedIdentity
from tests.records import make_identity, make_user

pytestmark = [pytest.mark.django_db, pytest.mark.urls(__name__)]

PASSWORD = "django.contrib.auth.backends.ModelBackend"


def home(request: HttpRequest) -> HttpResponse:
    return HttpResponse(request.user.get_username())


def sign_in_again(request: HttpRequest) -> HttpResponse:
    """As a site's page does that asks for the password before something important."""
    login(request, request.user, backend=PASSWORD)
    return home(request)


urlpatterns = [path("", home), path("again/", sign_in_again)]


@pytest.fixture
def ada() -> User:
    user = make_user()
    make_identity(user)
    return user


def browser(user: User, backend: str) -> Client:
    made = Client()
    made.force_login(user, backend=backend)
    return made


def is_signed_in(made: Client) -> bool:
    return made.get("/").content == b"ada"


@pytest.mark.parametrize("order", [(BACKEND_PATH, PASSWORD), (PASSWORD, BACKEND_PATH)])
def test_one_user_has_sessions_of_two_kinds(ada: User, order: tuple[str, str]) -> None:
    """Begun from one object; a revocation ends the one that rests on the identity."""
    first, second = (browser(ada, backend) for backend in order)
    assert is_signed_in(first)
    assert is_signed_in(second)
    LinkedIdentity.objects.update(consent=Consent.REVOKED, revoked_at=timezone.now())
    assert is_signed_in(first) is (order[0] == PASSWORD)
    assert is_signed_in(second) is (order[1] == PASSWORD)


def test_who_gives_the_password_stays_signed_in(ada: User) -> None:
    """The new session is not bound to the identity, and does not carry its hash."""
    made = browser(ada, BACKEND_PATH)
    assert made.get("/again/").content == b"ada"
    assert is_signed_in(made)
    LinkedIdentity.objects.update(consent=Consent.REVOKED, revoked_at=timezone.now())
    assert is_signed_in(made)


def test_a_revocation_ends_the_session_for_good(ada: User) -> None:
    """Consent that is granted anew does not bring it back."""
    made = browser(ada, BACKEND_PATH)
    LinkedIdentity.objects.update(revoked_at=timezone.now())
    assert not is_signed_in(made)
    LinkedIdentity.objects.update(revoked_at=None)
    assert not is_signed_in(made)


def loaded(user_id: Any) -> Any:
    return IdentityBackend().get_user(user_id)


def test_the_user_is_loaded_as_django_loads_them(
    ada: User, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    """Every field, in one query, ready to be saved."""
    for _ in range(2):
        with django_assert_num_queries(1):
            user = loaded(ada.pk)
        assert type(user) is User
        for field in User._meta.concrete_fields:
            assert getattr(user, field.attname) == getattr(ada, field.attname)
        assert not user.get_deferred_fields()
        assert user._state.db == "default"
    user.first_name = "Ada"
    user.save()
    assert User.objects.get().first_name == "Ada"


@pytest.mark.parametrize("user_id", [0, 10**6, None])
def test_nobody_is_nobody(ada: User, user_id: Any) -> None:
    """An id that no user has."""
    assert loaded(user_id) is None


@pytest.mark.parametrize(
    "changes", [{"consent": Consent.REVOKED}, {"application": "gone"}, {"environment": "live"}]
)
def test_without_a_consent_nobody_is_signed_in(ada: User, changes: dict[str, Any]) -> None:
    """None that counts here; the query that is kept asks the same as one made anew."""
    assert loaded(ada.pk) is not None
    LinkedIdentity.objects.update(**changes)
    assert loaded(ada.pk) is None


def test_without_settings_nobody_is_signed_in(ada: User) -> None:
    """No application counts then, and not each one."""
    with override_settings(DJANGO_IDENTITY={}):
        assert loaded(ada.pk) is None


def test_the_oldest_consent_counts(ada: User, settings: Any) -> None:
    """A session under several applications rests on one of them, and the user is loaded once."""
    default = settings.DJANGO_IDENTITY["default"]
    with override_settings(DJANGO_IDENTITY={"default": default, "second": default}):
        made = browser(ada, BACKEND_PATH)
        make_identity(ada, application="second")
        assert is_signed_in(made)
        LinkedIdentity.objects.filter(application="second").update(revoked_at=timezone.now())
        assert is_signed_in(made)
        LinkedIdentity.objects.filter(application="default").update(consent=Consent.REVOKED)
        assert not is_signed_in(made)


def test_a_token_sign_in_begins_no_session(ada: User, rf: RequestFactory) -> None:
    """Packages that hand out tokens send ``user_logged_in`` without a session, or beside one."""
    without = rf.post("/token/")
    user_logged_in.send(User, request=without, user=ada)
    user_logged_in.send(User, request=None, user=ada)
    beside = rf.post("/token/")
    beside.session = SessionStore()
    user_logged_in.send(User, request=beside, user=ada)
    assert beside.session.is_empty()
    assert not beside.session.modified


def test_a_disabled_user_is_not_loaded(ada: User) -> None:
    """As with Django's own backend."""
    User.objects.update(is_active=False)
    assert loaded(ada.pk) is None


def test_the_settings_decide_at_each_request(ada: User, settings: Any) -> None:
    """An application that is added or moved to live counts at once."""
    LinkedIdentity.objects.update(application="second")
    assert loaded(ada.pk) is None
    default = settings.DJANGO_IDENTITY["default"]
    with override_settings(DJANGO_IDENTITY={"default": default, "second": default}):
        assert loaded(ada.pk) is not None
    assert loaded(ada.pk) is None


@pytest.fixture
def own_manager(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A site whose manager hides users, by what holds at the moment."""
    hidden: list[str] = []

    def get_queryset(self: Any) -> Any:
        shown = super(UserManager, self).get_queryset().exclude(username__in=hidden)
        return shown.prefetch_related("groups")

    monkeypatch.setattr(UserManager, "get_queryset", get_queryset, raising=False)
    return hidden


def test_a_manager_of_the_sites_own_decides(ada: User, own_manager: list[str]) -> None:
    """At each request, as it does with Django's own backend."""
    assert loaded(ada.pk) == ada
    own_manager.append("ada")
    assert loaded(ada.pk) is None
    own_manager.clear()
    assert loaded(ada.pk) == ada


def test_a_session_of_a_hidden_user_is_nobodys(ada: User, own_manager: list[str]) -> None:
    """Through Django's own door."""
    request = HttpRequest()
    request.session = browser(ada, BACKEND_PATH).session
    assert get_user(request) == ada
    own_manager.append("ada")
    assert isinstance(get_user(request), AnonymousUser)
