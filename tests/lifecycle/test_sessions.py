"""Sessions end with the consent, and none that ended lives again."""

import itertools
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth import BACKEND_SESSION_KEY, login, user_logged_in
from django.contrib.auth.models import User, UserManager
from django.contrib.sessions.backends.db import SessionStore
from django.db.models import Value
from django.http import HttpRequest, HttpResponse
from django.test import Client, override_settings
from django.urls import path, reverse

from django_identity.backends import BACKEND_PATH, IdentityBackend
from django_identity.lifecycle import disconnecting, sessions
from django_identity.lifecycle.operators import interventions
from django_identity.models import Consent, LinkedIdentity, StoredClaim, TokenGrant
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
    """Two applications; the person signs in with the first."""
    given = service.settings(WEBHOOK_SECRETS=[SECRET])
    second = {**given, "WEBHOOK_SECRETS": ["another-webhook-secret"]}
    settings.DJANGO_IDENTITY = {"default": given, "second": second}
    return service


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


@pytest.mark.parametrize("ended", ["default", "second"])
@pytest.mark.parametrize("how", ["revoke", "disconnect"])
def test_whatever_ends_a_session_ends_those_of_every_application(
    site: FakeService, ended: str, how: str
) -> None:
    """Whichever of two links is older, and whichever the session began with."""
    user = make_user()
    make_identity(user, application="second", account_made=False)
    make_identity(user, account_made=False)
    browser = session_of(user)
    assert is_signed_in(browser)
    chosen = LinkedIdentity.objects.get(application=ended)
    if how == "revoke":
        interventions.revoke([chosen])
    else:
        disconnecting.disconnect(chosen)
    assert not is_signed_in(browser)
    assert is_signed_in(session_of(user))


STEPS = ("revoke", "disconnect", "sign in", "everywhere")


@pytest.mark.parametrize(
    "steps", spread(itertools.product(STEPS, repeat=3), every=3), ids=str
)
def test_an_ended_session_never_lives_again(
    site: FakeService, steps: tuple[str, ...]
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
            for identity in LinkedIdentity.objects.filter(user=user):
                disconnecting.disconnect(identity)
        elif step == "everywhere":
            sessions.end_all(user, application="default")
        else:
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
        (LinkedIdentity, {"linked_via": "connect", "account_made": False}),
        (LinkedIdentity, {"application": "gone"}),
        (LinkedIdentity, {"environment": "live"}),
        (User, {"is_active": False}),
    ],
    ids=str,
)
def test_no_session_rests_on_such_an_identity(
    site: FakeService, model: Any, changed: dict[str, Any]
) -> None:
    """Revoked, by code alone, of an alias that is gone, of another environment, disabled."""
    identity = make_identity(make_user())
    browser, idle = session_of(identity.user), session_of(identity.user)
    assert is_signed_in(browser)
    for row in model.objects.all():
        for name, value in changed.items():
            setattr(row, name, value)
        row.save()
    assert not is_signed_in(browser)
    page = browser.get(reverse("identity:login")).content.decode()
    assert "your data here is erased" not in page
    identity.user.delete()
    page = idle.get(reverse("identity:login")).content.decode()
    assert "your data here is erased" in page


def test_a_token_that_another_package_hands_out_begins_no_session(
    site: FakeService,
) -> None:
    request = HttpRequest()
    request.session = SessionStore()
    user = IdentityBackend().get_user(make_identity(make_user()).user.pk)
    for each in (request, HttpRequest()):
        user_logged_in.send(User, request=each, user=user)
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


SEEN = {
    "nobody's": lambda user: None,
    "by sign-in": lambda user: make_identity(user, subject="seen"),
    "by code": lambda user: make_identity_by_code(user, subject="seen"),
    "of an alias that is gone": lambda user: make_identity(user, application="gone"),
}


@pytest.mark.parametrize("whose", SEEN)
@pytest.mark.urls(__name__)
def test_staff_look_as_somebody_else_and_come_back(
    site: FakeService, whose: str
) -> None:
    """Whatever links the other person has; back as themselves the session ends with the consent."""
    staff, seen = make_user("staff"), make_user("seen")
    make_identity(staff)
    SEEN[whose](seen)
    browser = session_of(staff)
    for _ in range(2):
        browser.get("/look-as/seen/")
        assert signed_in_as(browser) == "seen"
        browser.get("/look-as/staff/")
        assert signed_in_as(browser) == "staff"
    deliver("consent.revoked")
    assert not is_signed_in(browser)


@pytest.mark.parametrize("consent_of", ["staff", "seen"])
@pytest.mark.urls(__name__)
def test_nobody_looks_through_a_consent_that_ended(
    site: FakeService, consent_of: str
) -> None:
    """Neither as a person who took back theirs, nor back as staff who took back their own."""
    staff, seen = make_user("staff"), make_user("seen")
    make_identity(staff, subject="staff")
    make_identity(seen, subject="seen", application="second")
    browser = session_of(staff)
    browser.get("/look-as/seen/")
    owner = LinkedIdentity.objects.get(subject=consent_of)
    interventions.revoke([owner])
    browser.get(f"/look-as/{'staff' if consent_of == 'staff' else 'seen'}/")
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


# A session goes on when an older link is renewed or confirmed

#: How the older of two links is before its owner, who came by the newer one, comes back with it.
OLDER: dict[str, dict[str, Any]] = {
    "revoked": {"consent": Consent.REVOKED, "revoked_at": LONG_AGO},
    "by code": {"linked_via": "connect", "account_made": False},
    "left by a crash": {"consent": Consent.REVOKED},
    "granted": {},
}


def two_links(user: User, older: dict[str, Any]) -> None:
    make_identity(user, **{"account_made": False, **older})
    make_identity(user, application="second", account_made=False)


@pytest.mark.parametrize("older", OLDER)
@pytest.mark.parametrize(
    ("face", "kind"),
    [
        ("page", "password"),
        ("page", "no password"),
        ("page", "is_staff"),
        ("api", "password"),
    ],
)
def test_whoever_renews_or_confirms_an_older_link_stays_signed_in(
    site: FakeService, older: str, kind: str, face: str
) -> None:
    """Their session rested on the newer link, and rests on the older one from then on."""
    user = make_user(**({kind: True} if kind == "is_staff" else {}))
    if kind == "no password":
        user.set_unusable_password()
        user.save()
    two_links(user, OLDER[older])
    browser = session_of(user)
    elsewhere = session_of(user)
    by_password = Client()
    by_password.force_login(user, backend=LOCAL)
    keep(browser, basket="kept")
    come_back_by(face, browser)
    assert is_signed_in(browser)
    assert browser.session["basket"] == "kept"
    # A session rests on the oldest link, which is another one now.
    assert is_signed_in(elsewhere) is (older == "granted")
    assert is_signed_in(by_password)
    sessions.end_all(user, application="default")
    assert not is_signed_in(browser)
    assert is_signed_in(by_password)


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
    sessions.end_all(User.objects.get(), application="default")


ENDS: dict[str, Callable[[], object]] = {
    "sign out everywhere": end_everywhere,
    "revoked by an operator": lambda: interventions.revoke(
        LinkedIdentity.objects.filter(application="second")
    ),
    "disconnected": lambda: disconnecting.disconnect(
        LinkedIdentity.objects.get(application="second")
    ),
    "disabled": lambda: User.objects.update(is_active=False),
    "another password": lambda: User.objects.update(password="another"),
}


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("older", ["revoked", "by code", "granted"])
def test_a_session_that_ended_on_the_way_back_is_not_begun_again(
    site: FakeService, end: str, older: str
) -> None:
    """In another browser, while the service was asked: this browser stays signed out too."""
    two_links(make_user(), OLDER[older])
    browser = session_of(User.objects.get())
    state = begin(browser)
    site.meanwhile["token"] = ENDS[end]
    come_back(browser, state)
    assert not is_signed_in(browser)


def test_a_session_that_ended_before_the_callback_is_nobodys(site: FakeService) -> None:
    two_links(make_user(), OLDER["revoked"])
    browser = session_of(User.objects.get())
    state = begin(browser)
    end_everywhere()
    assert "session_ended" in come_back(browser, state).content.decode()
    assert not is_signed_in(browser)


def test_a_sign_in_in_a_second_tab_keeps_the_basket(site: FakeService) -> None:
    """The first tab began as nobody's, and comes back by the older link."""
    two_links(make_user(), OLDER["revoked"])
    browser = Client()
    first = begin(browser)
    sign_in(browser, application="second")
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
    sessions.end_all(user, application="default")
    user_logged_in.send(User, request=request, user=user)
    return HttpResponse()


urlpatterns += [
    path("signal/", signal_from_a_page),
    path("signal-after-end/", signal_after_all_ended),
]


@pytest.mark.parametrize("backend", [BACKEND_PATH, LOCAL])
@pytest.mark.parametrize("name", ["ada", "eve"])
def test_a_signal_without_a_session_leaves_the_browsers_session(
    site: FakeService, backend: str, name: str
) -> None:
    """Whoever it is about: the browser's own person, or another one with an identity."""
    user = make_user("ada")
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
    assert LinkedIdentity.objects.get().consent == Consent.REVOKED
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


def test_the_user_is_as_the_sites_default_manager_has_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With what it annotates, as in a session of a password."""

    class Annotating(UserManager):
        def get_queryset(self) -> Any:
            return super().get_queryset().annotate(points=Value(7))

    manager = Annotating()
    manager.model = User
    manager.name = "objects"
    monkeypatch.setitem(vars(User._meta), "default_manager", manager)
    user = make_user()
    make_identity(user)
    assert IdentityBackend().get_user(user.pk).points == 7
