"""Sessions end with the consent, and none that ended lives again."""

import itertools
import pickle

import pytest
from django.contrib.auth import BACKEND_SESSION_KEY, login, user_logged_in
from django.contrib.auth.models import Group, User, UserManager
from django.db.models import Count, Value
from django.http import HttpResponse
from django.test import Client
from django.urls import path, reverse

from django_identity.backends import BACKEND_PATH, IdentityBackend
from django_identity.exceptions import ConfigurationError
from django_identity.gates import claims_of
from django_identity.lifecycle.ground import sessions
from django_identity.lifecycle.leaving import disconnecting
from django_identity.lifecycle.operators import interventions
from django_identity.models import Consent, LinkedIdentity, StoredClaim, TokenGrant
from tests import urls
from tests.deliveries import deliver
from tests.example_counts import spread
from tests.factories import LONG_AGO, make_claim, make_grant, make_identity, make_user
from tests.sign_in import begin, come_back, is_signed_in, sign_in, signed_in_as
from tests.snippets import module_of
from tests.views.connect.pages import LOCAL, browser_of

drop_ended_sessions = module_of("sessions", page="security.md").drop_ended_sessions
pytestmark = pytest.mark.django_db(transaction=True)


def confirm_password(request):
    """A site's own page before something important."""
    login(request, request.user, backend=LOCAL)
    return HttpResponse(request.user.get_username())


def look_as(request, username):
    """What django-hijack does both ways: another user goes on with the backend of the session."""
    user = User.objects.get(username=username)
    login(request, user, backend=request.session[BACKEND_SESSION_KEY])
    return HttpResponse(username)


def signal_from_a_page(request):
    """A package that hands out a token for the user with this name, and begins no session."""
    user = User.objects.get(username=request.GET["name"])
    user_logged_in.send(User, request=request, user=user)
    return HttpResponse()


def signal_after_all_ended(request):
    """The same, of the browser's own user, whose sessions another browser ends meanwhile."""
    user = User.objects.get(pk=request.user.pk)
    sessions.sign_out_everywhere(user)
    user_logged_in.send(User, request=request, user=user)
    return HttpResponse()


urlpatterns = [
    path("confirm/", confirm_password),
    path("look-as/<username>/", look_as),
    path("signal/", signal_from_a_page),
    path("signal-after-end/", signal_after_all_ended),
    *urls.urlpatterns,
]


def session_of(user):
    client = Client()
    # Read anew: an instance that was signed in before keeps the epoch that it was bound to.
    client.force_login(User.objects.get(pk=user.pk), backend=BACKEND_PATH)
    return client


STEPS = ("revoke", "disconnect", "sign in", "everywhere")


@pytest.mark.parametrize(
    "steps",
    spread(itertools.product(STEPS, repeat=3), every=7),
    ids=str,
)
def test_an_ended_session_never_lives_again(service, identity_clock, steps):
    """In any order of revoking, disconnecting, linking again and signing out everywhere.

    That is a button. A sign-in or a sign-out ends no other session.
    """
    user = make_user("owner", email="ada@example.org")
    make_identity(user, account_made=False)
    begun = [session_of(user)]
    ended = []
    for step in steps:
        if step == "revoke":
            deliver("consent.revoked")
        elif step == "disconnect":
            for identity in LinkedIdentity.objects.all():
                disconnecting.disconnect(identity)
        elif step == "everywhere":
            browser = browser_of(user)
            browser.post(reverse("identity:sign_out"), {"everywhere": "yes"})
        else:
            # A revocation that found nobody counts for ten seconds: see ``events.heard_since``.
            identity_clock.advance(seconds=11)
            linking = browser_of(user)
            sign_in(linking)
            begun.append(session_of(user))
            linking.post(reverse("identity:sign_out"))
            assert is_signed_in(begun[-1])
        if step != "sign in":
            ended += begun
        assert not any(map(is_signed_in, ended)), steps


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
def test_no_session_rests_on_such_an_identity(service, model, changed):
    """Revoked, by code alone, of another environment, disabled."""
    browser = session_of(make_identity(make_user()).user)
    assert is_signed_in(browser)
    for row in model.objects.all():
        for name, value in changed.items():
            setattr(row, name, value)
        row.save(update_fields=changed)
    assert not is_signed_in(browser)
    page = browser.get(reverse("identity:login")).content.decode()
    assert "your data here is erased" not in page


@pytest.mark.urls(__name__)
def test_logins_that_others_make_stay(service):
    """A user of an identity session who confirms the password stays signed in, by the password.

    With what the session holds.
    """
    browser = session_of(make_identity(make_user()).user)
    keep(browser, basket="kept")
    browser.get("/confirm/")
    assert is_signed_in(browser)
    deliver("consent.revoked")
    assert is_signed_in(browser)
    browser.get(reverse("identity:account"))
    assert browser.session["basket"] == "kept"


@pytest.mark.urls(__name__)
def test_staff_look_as_somebody_and_come_back(service):
    """Each session ends with the consent of the person in it.

    Where there is no identity, their package is told which backend to name: nobody is signed in.
    """
    staff, seen = make_user("staff"), make_user("seen")
    make_identity(staff)
    make_identity(seen, subject="seen")
    browser = session_of(staff)
    for username in ("seen", "staff", "seen"):
        browser.get(f"/look-as/{username}/")
        assert signed_in_as(browser) == username
    deliver("consent.revoked", subject="seen")
    assert not is_signed_in(browser)

    make_user("nobody")
    for username in ("seen", "nobody"):
        browser = session_of(staff)
        with pytest.raises(ConfigurationError, match=r"name the backend.*ModelBackend"):
            browser.get(f"/look-as/{username}/")
        assert not is_signed_in(browser)


# What an ended session holds


def ended(how):
    """A browser whose session ended. Its person had put something into it."""
    user = make_identity(make_user()).user
    browser = session_of(user)
    keep(browser, basket="a secret of hers")
    assert is_signed_in(browser)
    if how == "deleted by the site":
        user.delete()
    else:
        deliver("consent.revoked" if how == "revoked" else "data.deletion_requested")
    return browser


ENDED = {
    "revoked": "you took back your consent",
    "erased": "your data here is erased",
    "deleted by the site": "your data here is erased",
}


@pytest.mark.parametrize("how", ENDED)
@pytest.mark.parametrize(
    ("address", "accepts"),
    [
        ("/identity/login/", "text/html"),
        ("/identity/account/", "text/html"),
        ("/identity/api/me", "application/json"),
        ("/gated/", "application/json"),
        # A page of the site's own, with the middleware of the docs.
        ("/", "text/html"),
    ],
)
def test_nobody_reads_the_data_of_a_session_that_ended(
    service,
    settings,
    how,
    address,
    accepts,
):
    """The next person at this browser. The page still says why the session ended."""
    if address == "/":
        settings.MIDDLEWARE = [*settings.MIDDLEWARE, f"{__name__}.drop_ended_sessions"]
    browser = ended(how)
    browser.get(address, headers={"accept": accepts})
    assert "basket" not in browser.session
    page = browser.get(reverse("identity:login")).content.decode()
    assert ENDED[how] in page


def test_the_form_of_an_ended_session_works(service, settings):
    """Its token is in the session, in some sites."""
    settings.CSRF_USE_SESSIONS = True
    make_identity(make_user())
    browser = Client(enforce_csrf_checks=True)
    browser.force_login(User.objects.get(), backend=BACKEND_PATH)
    browser.get(reverse("identity:login"))
    deliver("consent.revoked")
    page = browser.get(reverse("identity:login"))
    token = str(page.context["csrf_token"])
    answer = browser.post(reverse("identity:login"), {"csrfmiddlewaretoken": token})
    assert answer.status_code == 302
    assert answer["Location"].startswith(service.settings()["AUTH_URL"])


# A session goes on when its identity is renewed


@pytest.mark.parametrize("kind", ["password", "no password", "is_staff"])
def test_whoever_renews_stays_signed_in(service, kind):
    """In every browser, with what the session held."""
    user = make_user(**({kind: True} if kind == "is_staff" else {}))
    if kind == "no password":
        user.set_unusable_password()
        user.save()
    make_identity(user, account_made=False)
    browser = session_of(user)
    elsewhere = session_of(user)
    keep(browser, basket="kept")
    assert sign_in(browser).status_code == 302
    assert is_signed_in(browser)
    assert browser.session["basket"] == "kept"
    assert is_signed_in(elsewhere)
    sessions.sign_out_everywhere(user)
    assert not is_signed_in(browser)


def keep(browser, **data):
    session = browser.session
    session.update(data)
    session.save()


ENDS = {
    "sign out everywhere": lambda: sessions.sign_out_everywhere(User.objects.get()),
    "revoked by an operator": lambda: interventions.revoke(
        LinkedIdentity.objects.all(),
    ),
    "disconnected": lambda: disconnecting.disconnect(LinkedIdentity.objects.get()),
    "disabled": lambda: User.objects.update(is_active=False),
    "another password": lambda: User.objects.update(password="another"),
}


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("is_before", [True, False])
def test_a_session_that_ended_on_the_way_back_is_not_begun_again(
    service,
    end,
    is_before,
):
    """In another browser, before the callback or during it: this browser stays signed out too."""
    make_identity(make_user(), account_made=False)
    browser = session_of(User.objects.get())
    state = begin(browser)
    if is_before:
        ENDS[end]()
    else:
        service.meanwhile["token"] = ENDS[end]
    page = come_back(browser, state).content.decode()
    assert not is_signed_in(browser)
    assert not is_before or "session_ended" in page


# Signals of other packages


@pytest.mark.urls(__name__)
@pytest.mark.parametrize("backend", [BACKEND_PATH, LOCAL])
@pytest.mark.parametrize("name", ["ada", "eve", "nobody"])
def test_a_signal_without_a_session_leaves_the_browsers_session(service, backend, name):
    """Whoever it is about: the browser's own person, or another one, with an identity or not.

    One that ended meanwhile stays ended.
    """
    user = make_user("ada")
    make_user("nobody")
    make_identity(user)
    make_identity(make_user("eve"), subject="subject-2")
    browser = Client()
    browser.force_login(User.objects.get(pk=user.pk), backend=backend)
    assert browser.get("/signal/", {"name": name}).status_code == 200
    assert signed_in_as(browser) == "ada"
    if backend == BACKEND_PATH:
        assert browser.get("/signal-after-end/").status_code == 200
        assert not is_signed_in(browser)


# Users whom the site hides


@pytest.mark.parametrize("consent", ["", Consent.GRANTED, Consent.REVOKED])
def test_a_hidden_person_is_not_told_that_they_are_signed_in(service, hiding, consent):
    """No request would find them. So nothing is stored either, not even somebody new."""
    service.profile = {"last_name": "Closed"}
    if consent:
        revoked_at = LONG_AGO if consent == Consent.REVOKED else None
        user = make_user(last_name="Closed")
        make_identity(user, consent=consent, revoked_at=revoked_at)
    before = [*LinkedIdentity.objects.values()]
    browser = Client()
    page = sign_in(browser).content.decode()
    assert "user_inactive" in page
    assert "You are signed in" not in page
    assert [*LinkedIdentity.objects.values()] == before
    assert User._base_manager.count() == len(before)
    assert not TokenGrant.objects.exists()
    assert not is_signed_in(browser)


#: The erasure stays pending: Django does not save a row that the base manager hides.
ENDS_OF_HIDDEN = {
    "event": lambda _: deliver("consent.revoked"),
    "request to delete": lambda _: deliver("data.deletion_requested"),
    "operator": lambda _: interventions.revoke(LinkedIdentity.objects.all()),
    "erasure": lambda _: interventions.erase(LinkedIdentity.objects.get()),
    "deletion by the site": User.delete,
}


@pytest.mark.parametrize("end", ENDS_OF_HIDDEN)
def test_an_account_that_no_manager_shows_is_revoked(service, hiding, monkeypatch, end):
    """A site may have made its hiding manager the base manager, too."""
    monkeypatch.setitem(vars(User._meta), "base_manager", User.objects)
    user = make_user(last_name="Closed")
    identity = make_identity(user)
    make_grant(identity)
    make_claim(identity)
    ENDS_OF_HIDDEN[end](user)
    assert not LinkedIdentity.objects.filter(consent=Consent.GRANTED).exists()
    assert not TokenGrant.objects.exists()
    assert not StoredClaim.objects.filter(valid_until__isnull=False).exists()


class ProxyUser(User):
    class Meta:
        proxy = True
        app_label = "sessions_of_sites"


def annotating(users):
    return users.annotate(points=Value(7))


def joining(users):
    """A user of two groups comes twice."""
    return annotating(users).filter(groups__isnull=False)


MANAGERS = {
    "is Django's": lambda users: users,
    "joins": joining,
    "counts": lambda users: users.annotate(points=Count("groups") + 7),
    "only": lambda users: annotating(users).only("username"),
    "sorts": lambda users: annotating(users).order_by("-username"),
    "makes another class": lambda users: users,
}


@pytest.fixture(params=MANAGERS)
def manager(request, monkeypatch):
    chosen = MANAGERS[request.param]

    class Own(UserManager):
        def get_queryset(self):
            return chosen(super().get_queryset())

    own = Own()
    own.model = ProxyUser if request.param == "makes another class" else User
    own.name = "objects"
    monkeypatch.setitem(vars(User._meta), "default_manager", own)
    return own


def test_the_user_is_as_the_sites_default_manager_has_it(
    manager,
    django_assert_num_queries,
):
    """With what it annotates, as in a session of a password. One query, and one for the gate."""
    user = make_user()
    user.groups.set([Group.objects.create(name="a"), Group.objects.create(name="b")])
    make_claim(make_identity(user))
    with django_assert_num_queries(1):
        loaded = IdentityBackend().get_user(user.pk)
        assert getattr(loaded, "points", 7) >= 7
        assert loaded.email == ""
        assert type(loaded) is manager.model
    with django_assert_num_queries(1):
        assert claims_of(loaded) == {"age_over_18": True}


@pytest.mark.parametrize("cached", [False, True])
def test_a_user_in_a_cache_does_not_go_on_saying_granted(cached):
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
