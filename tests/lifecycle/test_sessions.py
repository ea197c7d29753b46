"""Sessions end with the consent, and none that ended lives again."""

import itertools
import pickle
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth import BACKEND_SESSION_KEY, login, user_logged_in
from django.contrib.auth.models import Group, User, UserManager
from django.contrib.sessions.backends.db import SessionStore
from django.db.models import Count, Value
from django.http import HttpRequest, HttpResponse
from django.test import Client, override_settings
from django.urls import path, reverse

from django_identity.backends import BACKEND_PATH, IdentityBackend
from django_identity.exceptions import ConfigurationError
from django_identity.gates import claims_of
from django_identity.lifecycle.ground import sessions
from django_identity.lifecycle.leaving import disconnecting
from django_identity.lifecycle.operators import interventions
from django_identity.models import Consent, LinkedIdentity, StoredClaim, TokenGrant
from django_identity.testing.clock import Clock
from tests import urls
from tests.deliveries import SECRET, deliver
from tests.effort import spread
from tests.factories import (
    LONG_AGO,
    make_claim,
    make_grant,
    make_identity,
    make_identity_by_code,
    make_user,
)
from tests.fake_service import FakeService
from tests.sign_in import begin, come_back, is_signed_in, sign_in, signed_in_as
from tests.snippets import module_of
from tests.views.connect.pages import LOCAL

drop_ended_sessions = module_of("sessions", page="security.md").drop_ended_sessions
pytestmark = pytest.mark.django_db(transaction=True)


def confirm_password(request: HttpRequest) -> HttpResponse:
    """A site's own page before something important."""
    login(request, request.user, backend=LOCAL)
    return HttpResponse(request.user.get_username())


def look_as(request: HttpRequest, username: str) -> HttpResponse:
    """What django-hijack does both ways: another user goes on with the backend of the session."""
    user = User.objects.get(username=username)
    login(request, user, backend=request.session[BACKEND_SESSION_KEY])
    return HttpResponse(username)


urlpatterns = [
    path("confirm/", confirm_password),
    path("look-as/<username>/", look_as),
    *urls.urlpatterns,
]


@pytest.fixture
def site(service: FakeService, settings: Any) -> FakeService:
    settings.DJANGO_IDENTITY = service.settings(WEBHOOK_SECRETS=[SECRET])
    return service


def end_all(user: User) -> None:
    sessions.sign_out_everywhere(user)


def session_of(user: User) -> Client:
    client = Client()
    # Read anew: an instance that was signed in before keeps the epoch that it was bound to.
    client.force_login(User.objects.get(pk=user.pk), backend=BACKEND_PATH)
    return client


def test_the_next_request_after_a_revocation_is_nobodys(site: FakeService) -> None:
    browser = Client()
    sign_in(browser)
    deliver("consent.revoked")
    assert not is_signed_in(browser)


STEPS = ("revoke", "disconnect", "sign in", "everywhere")


@pytest.mark.parametrize(
    "steps", spread(itertools.product(STEPS, repeat=3), every=3), ids=str
)
def test_an_ended_session_never_lives_again(
    site: FakeService, identity_clock: Clock, steps: tuple[str, ...]
) -> None:
    """In any order of revoking, disconnecting, linking again and signing out everywhere."""
    user = make_user("owner", email="ada@example.org")
    make_identity(user, account_made=False)
    begun = [session_of(user)]
    ended: list[Client] = []
    for step in steps:
        if step == "revoke":
            deliver("consent.revoked")
        elif step == "disconnect":
            for identity in LinkedIdentity.objects.all():
                disconnecting.disconnect(identity)
        elif step == "everywhere":
            end_all(user)
        else:
            # A revocation that found nobody counts for ten seconds: see ``events.heard_since``.
            identity_clock.advance(seconds=11)
            linking = Client()
            linking.force_login(user, backend=LOCAL)
            sign_in(linking)
            begun.append(session_of(user))
        if step != "sign in":
            ended += begun
        assert not any(map(is_signed_in, ended)), steps


def test_sign_out_everywhere_is_a_button(site: FakeService) -> None:
    """Neither a sign-in nor a sign-out ends another session, and the button ends them all."""
    here, elsewhere, third = Client(), Client(), Client()
    for browser in (here, elsewhere, third):
        sign_in(browser)
    third.post(reverse("identity:sign_out"))
    assert is_signed_in(here)
    here.post(reverse("identity:sign_out"), {"everywhere": "yes"})
    assert not is_signed_in(here)
    assert not is_signed_in(elsewhere)
    assert (
        here.post(reverse("identity:sign_out"), {"everywhere": "yes"}).status_code
        == 302
    )


@pytest.mark.parametrize(
    ("model", "changed"),
    [
        (LinkedIdentity, {"consent": Consent.REVOKED}),
        (LinkedIdentity, {"linked_via": "connect", "made_account": ""}),
        (LinkedIdentity, {"environment": "live"}),
        (User, {"is_active": False}),
    ],
    ids=str,
)
def test_no_session_rests_on_such_an_identity(
    site: FakeService, model: Any, changed: dict[str, Any]
) -> None:
    """Revoked, by code alone, of another environment, disabled."""
    identity = make_identity(make_user())
    browser, idle = session_of(identity.user), session_of(identity.user)
    assert is_signed_in(browser)
    for row in model.objects.all():
        for name, value in changed.items():
            setattr(row, name, value)
        row.save(update_fields=changed)
    assert not is_signed_in(browser)
    page = browser.get(reverse("identity:login")).content.decode()
    assert "your data here is erased" not in page
    identity.user.delete()
    page = idle.get(reverse("identity:login")).content.decode()
    assert "your data here is erased" in page


def test_a_token_that_another_package_hands_out_begins_no_session(
    site: FakeService,
) -> None:
    """For somebody with an identity, or without one."""
    request = HttpRequest()
    request.session = SessionStore()
    user = IdentityBackend().get_user(make_identity(make_user()).user.pk)
    for each in (request, HttpRequest()):
        for about in (user, make_user(f"of {each.method}{id(each)}")):
            user_logged_in.send(User, request=each, user=about)
    assert request.session.is_empty()


def test_logins_that_others_make_stay(site: FakeService) -> None:
    """A user of an identity session who confirms the password stays signed in, by the password."""
    user = make_user()
    make_identity(user)
    with override_settings(ROOT_URLCONF=__name__):
        browser = session_of(user)
        browser.get("/confirm/")
        assert is_signed_in(browser)
        deliver("consent.revoked")
        assert is_signed_in(browser)


#: Who has no identity that signs in, so no session of this backend.
LINKS: dict[str, Callable[[User], object]] = {
    "nobody": lambda user: None,
    "by code": make_identity_by_code,
    "revoked": partial(make_identity, consent=Consent.REVOKED),
    "of the other environment": partial(make_identity, environment="live"),
}


@pytest.mark.parametrize("link", LINKS)
@pytest.mark.urls(__name__)
def test_staff_look_as_somebody_without_an_identity(
    site: FakeService, link: str
) -> None:
    """Their package is told which backend to name, and nobody is signed in."""
    staff, seen = make_user("staff"), make_user("seen")
    make_identity(staff, subject="staff")
    LINKS[link](seen)
    browser = session_of(staff)
    with pytest.raises(ConfigurationError, match=r"name the backend.*ModelBackend"):
        browser.get("/look-as/seen/")
    assert not is_signed_in(browser)


@pytest.mark.urls(__name__)
def test_staff_look_as_somebody_with_an_identity_and_come_back(
    site: FakeService,
) -> None:
    """Each session ends with the consent of the person in it."""
    staff, seen = make_user("staff"), make_user("seen")
    make_identity(staff)
    make_identity(seen, subject="seen")
    browser = session_of(staff)
    for _ in range(2):
        browser.get("/look-as/seen/")
        assert signed_in_as(browser) == "seen"
        browser.get("/look-as/staff/")
        assert signed_in_as(browser) == "staff"
    browser.get("/look-as/seen/")
    deliver("consent.revoked", subject="seen")
    assert not is_signed_in(browser)


def test_a_session_that_ended_does_not_go_on_without_identity(
    site: FakeService,
) -> None:
    """A person who disconnected is signed out, though others may look at the site as them."""
    user = make_user()
    identity = make_identity(user, account_made=False)
    browser = session_of(user)
    disconnecting.disconnect(identity)
    assert not is_signed_in(browser)
    assert not is_signed_in(browser)


# What an ended session holds


@pytest.mark.parametrize(
    ("address", "accepts"),
    [
        ("/identity/login/", "text/html"),
        ("/identity/account/", "text/html"),
        ("/identity/api/me", "application/json"),
        ("/gated/", "text/html"),
        ("/gated/", "application/json"),
    ],
)
@pytest.mark.parametrize("how", ["revoked", "erased", "deleted by the site"])
def test_nobody_reads_the_data_of_a_session_that_ended(
    site: FakeService, how: str, address: str, accepts: str
) -> None:
    """The next person at this browser. The page still says why the session ended."""
    user = make_user()
    make_identity(user)
    browser = session_of(user)
    keep(browser, basket="a secret of hers")
    assert is_signed_in(browser)
    if how == "deleted by the site":
        user.delete()
    else:
        deliver("consent.revoked" if how == "revoked" else "data.deletion_requested")
    browser.get(address, headers={"accept": accepts})
    assert "basket" not in browser.session
    page = browser.get(reverse("identity:login")).content.decode()
    said = (
        "you took back your consent" if how == "revoked" else "your data here is erased"
    )
    assert said in page


@pytest.mark.parametrize("how", ["revoked", "erased", "deleted by the site"])
def test_the_middleware_of_the_docs_empties_it_on_the_sites_own_pages(
    site: FakeService, settings: Any, how: str
) -> None:
    settings.MIDDLEWARE = [*settings.MIDDLEWARE, f"{__name__}.drop_ended_sessions"]
    user = make_user()
    make_identity(user)
    browser = session_of(user)
    keep(browser, basket="a secret of hers")
    assert is_signed_in(browser)
    assert "basket" in browser.session
    if how == "deleted by the site":
        user.delete()
    else:
        deliver("consent.revoked" if how == "revoked" else "data.deletion_requested")
    browser.get("/")
    assert "basket" not in browser.session


def test_the_form_of_an_ended_session_works(site: FakeService, settings: Any) -> None:
    """Its token is in the session, in some sites."""
    settings.CSRF_USE_SESSIONS = True
    user = make_user()
    make_identity(user)
    browser = Client(enforce_csrf_checks=True)
    browser.force_login(User.objects.get(), backend=BACKEND_PATH)
    browser.get(reverse("identity:login"))
    deliver("consent.revoked")
    page = browser.get(reverse("identity:login"))
    token = str(page.context["csrf_token"])
    answer = browser.post(reverse("identity:login"), {"csrfmiddlewaretoken": token})
    assert answer.status_code == 302
    assert answer["Location"].startswith(site.settings()["AUTH_URL"])


def test_a_session_that_goes_on_keeps_its_data(site: FakeService) -> None:
    """Of an identity, and of a password whose owner's consent ended."""
    user = make_user()
    make_identity(user)
    by_password = Client()
    by_password.force_login(user, backend=LOCAL)
    for browser in (session_of(user), by_password):
        keep(browser, basket="kept")
        browser.get(reverse("identity:account"))
        assert browser.session["basket"] == "kept"
    deliver("consent.revoked")
    by_password.get(reverse("identity:account"))
    assert by_password.session["basket"] == "kept"


# A session goes on when its identity is renewed


@pytest.mark.parametrize("face", ["page", "api"])
@pytest.mark.parametrize("kind", ["password", "no password", "is_staff"])
def test_whoever_renews_stays_signed_in(
    site: FakeService, kind: str, face: str
) -> None:
    """In every browser, with what the session held."""
    user = make_user(**({kind: True} if kind == "is_staff" else {}))
    if kind == "no password":
        user.set_unusable_password()
        user.save()
    make_identity(user, account_made=False)
    browser = session_of(user)
    elsewhere = session_of(user)
    by_password = Client()
    by_password.force_login(user, backend=LOCAL)
    keep(browser, basket="kept")
    come_back_by(face, browser)
    assert is_signed_in(browser)
    assert browser.session["basket"] == "kept"
    assert is_signed_in(elsewhere)
    assert is_signed_in(by_password)
    end_all(user)
    assert not is_signed_in(browser)
    assert is_signed_in(by_password)


@pytest.mark.parametrize("before", ["revoked", "by code", "disconnected"])
def test_whoever_links_by_a_password_session_keeps_it(
    site: FakeService, before: str
) -> None:
    """It is of the password, before and after; what ended with the consent stays dead."""
    user = make_user()
    identity = make_identity(user, account_made=False)
    old = session_of(user)
    if before == "revoked":
        interventions.revoke([identity])
    else:
        disconnecting.disconnect(identity)
    if before == "by code":
        make_identity_by_code(user)
    browser = Client()
    browser.force_login(user, backend=LOCAL)
    come_back_by("page", browser)
    assert LinkedIdentity.objects.get().signs_in
    assert is_signed_in(browser)
    assert not is_signed_in(old)
    deliver("consent.revoked")
    assert is_signed_in(browser)


def keep(browser: Client, **data: Any) -> None:
    session = browser.session
    session.update(data)
    session.save()


def come_back_by(face: str, browser: Client) -> None:
    state = begin(browser)
    if face == "page":
        assert come_back(browser, state).status_code == 302
        return
    query = {"state": state, "code": "a-code"}
    address = reverse("identity_api:callback")
    answer = browser.post(address, query, content_type="application/json")
    assert answer.status_code == 200


def end_everywhere() -> None:
    end_all(User.objects.get())


ENDS: dict[str, Callable[[], object]] = {
    "sign out everywhere": end_everywhere,
    "revoked by an operator": lambda: interventions.revoke(
        LinkedIdentity.objects.all()
    ),
    "disconnected": lambda: disconnecting.disconnect(LinkedIdentity.objects.get()),
    "disabled": lambda: User.objects.update(is_active=False),
    "another password": lambda: User.objects.update(password="another"),
}


@pytest.mark.parametrize("end", ENDS)
def test_a_session_that_ended_on_the_way_back_is_not_begun_again(
    site: FakeService, end: str
) -> None:
    """In another browser, while the service was asked: this browser stays signed out too."""
    make_identity(make_user(), account_made=False)
    browser = session_of(User.objects.get())
    state = begin(browser)
    site.meanwhile["token"] = ENDS[end]
    come_back(browser, state)
    assert not is_signed_in(browser)


def test_a_session_that_ended_before_the_callback_is_nobodys(site: FakeService) -> None:
    make_identity(make_user(), account_made=False)
    browser = session_of(User.objects.get())
    state = begin(browser)
    end_everywhere()
    assert "session_ended" in come_back(browser, state).content.decode()
    assert not is_signed_in(browser)


def test_a_sign_in_in_a_second_tab_keeps_the_basket(site: FakeService) -> None:
    """The first tab began as nobody's, and comes back after the other one."""
    make_identity(make_user(), account_made=False)
    browser = Client()
    first = begin(browser)
    sign_in(browser)
    keep(browser, basket="kept")
    come_back(browser, first)
    assert is_signed_in(browser)
    assert browser.session["basket"] == "kept"


# Signals of other packages


def signal_from_a_page(request: HttpRequest) -> HttpResponse:
    """A package that hands out a token for the user with this name, and begins no session."""
    user = User.objects.get(username=request.GET["name"])
    user_logged_in.send(User, request=request, user=user)
    return HttpResponse()


def signal_after_all_ended(request: HttpRequest) -> HttpResponse:
    """The same, of the browser's own user, whose sessions another browser ends meanwhile."""
    user = User.objects.get(pk=request.user.pk)
    end_all(user)
    user_logged_in.send(User, request=request, user=user)
    return HttpResponse()


urlpatterns += [
    path("signal/", signal_from_a_page),
    path("signal-after-end/", signal_after_all_ended),
]


@pytest.mark.parametrize("backend", [BACKEND_PATH, LOCAL])
@pytest.mark.parametrize("name", ["ada", "eve", "nobody"])
def test_a_signal_without_a_session_leaves_the_browsers_session(
    site: FakeService, backend: str, name: str
) -> None:
    """Whoever it is about: the browser's own person, or another one, with an identity or not."""
    user = make_user("ada")
    make_user("nobody")
    make_identity(user)
    make_identity(make_user("eve"), subject="subject-2")
    browser = Client()
    browser.force_login(User.objects.get(pk=user.pk), backend=backend)
    with override_settings(ROOT_URLCONF=__name__):
        assert browser.get("/signal/", {"name": name}).status_code == 200
        assert signed_in_as(browser) == "ada"


def test_a_signal_without_a_session_restores_none(site: FakeService) -> None:
    user = make_user()
    make_identity(user)
    browser = session_of(user)
    with override_settings(ROOT_URLCONF=__name__):
        assert browser.get("/signal-after-end/").status_code == 200
        assert not is_signed_in(browser)


# Users whom the site hides


@pytest.mark.parametrize("consent", [Consent.GRANTED, Consent.REVOKED])
def test_a_hidden_person_is_not_told_that_they_are_signed_in(
    site: FakeService, hiding: None, consent: str
) -> None:
    """No request would find them. So nothing is stored either."""
    user = make_user(last_name="Closed")
    revoked_at = LONG_AGO if consent == Consent.REVOKED else None
    make_identity(user, consent=consent, revoked_at=revoked_at)
    before = LinkedIdentity.objects.values().get()
    browser = Client()
    page = sign_in(browser).content.decode()
    assert "user_inactive" in page
    assert "You are signed in" not in page
    assert LinkedIdentity.objects.values().get() == before
    assert not TokenGrant.objects.exists()
    assert not is_signed_in(browser)


def test_an_account_that_is_hidden_as_soon_as_it_is_made_is_taken_back(
    site: FakeService, hiding: None
) -> None:
    site.profile = {"last_name": "Closed"}
    assert "user_inactive" in sign_in(Client()).content.decode()
    assert not LinkedIdentity.objects.exists()
    assert not User._base_manager.exists()


def by_event() -> None:
    deliver("consent.revoked")


def by_request_to_delete() -> None:
    deliver("data.deletion_requested")


def by_operator() -> None:
    assert interventions.revoke(LinkedIdentity.objects.all()) == 1


def by_erasure() -> None:
    """It stays pending: Django does not save a row that the base manager hides."""
    assert interventions.erase(LinkedIdentity.objects.get()).error == "IntegrityError"


@pytest.mark.parametrize(
    "end", [by_event, by_request_to_delete, by_operator, by_erasure]
)
def test_an_account_that_no_manager_shows_is_revoked(
    site: FakeService, hiding: None, monkeypatch: pytest.MonkeyPatch, end: Any
) -> None:
    """A site may have made its hiding manager the base manager, too."""
    monkeypatch.setitem(vars(User._meta), "base_manager", User.objects)
    identity = make_identity(make_user(last_name="Closed"))
    make_grant(identity)
    make_claim(identity)
    end()
    assert not LinkedIdentity.objects.filter(consent=Consent.GRANTED).exists()
    assert not TokenGrant.objects.exists()
    assert not StoredClaim.objects.filter(valid_until__isnull=False).exists()


def test_an_account_that_no_manager_shows_can_be_deleted(
    site: FakeService, hiding: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(vars(User._meta), "base_manager", User.objects)
    user = make_user(last_name="Closed")
    make_grant(make_identity(user))
    user.delete()
    assert not LinkedIdentity.objects.exists()


class ProxyUser(User):
    class Meta:
        proxy = True
        app_label = "sessions_of_sites"


def annotating(users: Any) -> Any:
    return users.annotate(points=Value(7))


def counting(users: Any) -> Any:
    return users.annotate(points=Count("groups") + 7)


def joining(users: Any) -> Any:
    """A user of two groups comes twice."""
    return annotating(users).filter(groups__isnull=False)


MANAGERS: dict[str, Callable[[Any], Any]] = {
    "is Django's": lambda users: users,
    "annotates": annotating,
    "counts": counting,
    "joins": joining,
    "distinct": lambda users: joining(users).distinct(),
    "only": lambda users: annotating(users).only("username"),
    "defers": lambda users: annotating(users).defer("email"),
    "sorts": lambda users: annotating(users).order_by("-username"),
}


@pytest.fixture(params=MANAGERS)
def manager(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = MANAGERS[request.param]

    class Own(UserManager):
        def get_queryset(self) -> Any:
            return chosen(super().get_queryset())

    own = Own()
    own.model = User
    own.name = "objects"
    monkeypatch.setitem(vars(User._meta), "default_manager", own)


@pytest.mark.usefixtures("manager")
def test_the_user_is_as_the_sites_default_manager_has_it(
    django_assert_num_queries: Any,
) -> None:
    """With what it annotates, as in a session of a password. One query, and one for the gate."""
    user = make_user()
    user.groups.set([Group.objects.create(name="a"), Group.objects.create(name="b")])
    make_claim(make_identity(user))
    with django_assert_num_queries(1):
        loaded = IdentityBackend().get_user(user.pk)
        assert getattr(loaded, "points", 7) >= 7
        assert loaded.email == ""
    with django_assert_num_queries(1):
        assert claims_of(loaded) == {"age_over_18": True}


def test_the_user_is_of_the_class_that_the_manager_chooses(
    monkeypatch: pytest.MonkeyPatch, django_assert_num_queries: Any
) -> None:
    own = UserManager()
    own.model = ProxyUser
    own.name = "objects"
    monkeypatch.setitem(vars(User._meta), "default_manager", own)
    user = make_user()
    make_claim(make_identity(user))
    with django_assert_num_queries(2):
        loaded = IdentityBackend().get_user(user.pk)
        assert type(loaded) is ProxyUser
        assert claims_of(loaded) == {"age_over_18": True}


@pytest.mark.parametrize("cached", [False, True])
def test_a_user_in_a_cache_does_not_go_on_saying_granted(cached: bool) -> None:
    """The instance of a session has no identity on it, nor has its copy in a cache."""
    user = make_user()
    identity = make_identity(user)
    make_claim(identity)
    loaded = IdentityBackend().get_user(user.pk)
    assert claims_of(loaded) == {"age_over_18": True}
    if cached:
        loaded = pickle.loads(pickle.dumps(loaded))
    interventions.revoke([identity])
    assert loaded.linked_identity.consent == Consent.REVOKED
    assert claims_of(loaded) == {}


def test_a_session_is_read_in_async_code_too() -> None:
    user = make_user()
    identity = make_identity(user)
    get_user = async_to_sync(IdentityBackend().aget_user)
    loaded = get_user(user.pk)
    assert loaded == user
    assert loaded.get_session_auth_hash() != user.get_session_auth_hash()
    interventions.revoke([identity])
    assert get_user(user.pk) is None
