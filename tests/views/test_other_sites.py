"""Sites of other kinds: odd managers, libraries, times and middleware; and one without TLS."""

import json
import re
from typing import Any

import django
import pytest
from django.contrib.auth.models import User, UserManager
from django.db import transaction
from django.http import HttpRequest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from django_identity.models import (
    AuthorizationRequest,
    ConnectRedemption,
    LinkedIdentity,
    StoredClaim,
    WebhookEvent,
)
from tests.admin import operators
from tests.deliveries import event_body, post
from tests.factories import make_claim, make_grant, make_identity, make_user
from tests.fake_service import FakeService
from tests.sign_in import begin, come_back, sign_in
from tests.views.bad_input.refusals import lines_of_ours
from tests.views.connect.pages import LIVE, browser_of, hand_in

pytestmark = pytest.mark.django_db(transaction=True)

PAGES = ("login", "account", "connect", "disconnect", "erase", "download")


# Tag libraries of the site


@pytest.mark.parametrize("name", ["identity", "identity_pages", "identity_admin"])
def test_a_tag_library_of_the_site_with_our_name(client, settings, name):
    """It has none of what our own pages need, and Django takes that of the last app."""
    [engine] = settings.TEMPLATES
    libraries = {name: "django.templatetags.tz"}
    options = {**engine["OPTIONS"], "libraries": libraries}
    settings.TEMPLATES = [{**engine, "OPTIONS": options}]
    identity = make_identity(make_user())
    make_claim(identity)
    browser = browser_of(identity.user)
    for page in PAGES:
        assert browser.get(reverse(f"identity:{page}")).status_code == 200, page
    assert client.get(reverse("identity:login")).status_code == 200
    assert client.get(reverse("identity:callback")).status_code == 400
    operator = operators.superuser()
    operators.page(operator, operators.IDENTITIES)
    operators.page(operator, operators.IDENTITY, identity.pk)


# A manager that defers columns, where each read of a deferred one raises

#: A password or a flag deferred is read by Django itself.
DEFERRED = ("email", "last_name", "last_login", "date_joined")


class Deferring(UserManager[User]):
    def get_queryset(self) -> Any:
        users = super().get_queryset().defer(*DEFERRED)
        if django.VERSION >= (6, 1):
            # With it Django raises by itself.
            users = users.fetch_mode(django.db.models.FETCH_RAISE)
        return users


@pytest.fixture
def deferring(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of both managers, that the package asks."""
    manager = Deferring()
    manager.model = User
    manager.name = "objects"
    for name in ("default_manager", "base_manager"):
        monkeypatch.setitem(vars(User._meta), name, manager)
    monkeypatch.setattr(User, "objects", manager)
    refresh = User.refresh_from_db

    def refuse(self: User, using: Any = None, fields: Any = None, **more: Any) -> None:
        if fields and self.get_deferred_fields().intersection(fields):
            raise LookupError(f"{fields} are deferred")
        refresh(self, using=using, fields=fields, **more)

    monkeypatch.setattr(User, "refresh_from_db", refuse)


@pytest.mark.usefixtures("deferring")
@pytest.mark.parametrize("by", ["identity", "password"])
def test_each_page_of_a_person(service, by):
    """They read what they show, and nothing else of the instance that Django made."""
    user = make_user(email="ada@example.org", first_name="Ada")
    identity = make_identity(user)
    make_grant(identity)
    make_claim(identity)
    browser = browser_of(user) if by == "password" else Client()
    assert sign_in(browser).status_code == 302
    for page in PAGES:
        assert browser.get(reverse(f"identity:{page}")).status_code == 200, page
    assert "ada@example.org" in browser.get(reverse("identity:account")).text
    assert browser.get(reverse("identity_api:me")).status_code == 200
    assert come_back(browser, begin(browser)).status_code == 302
    assert browser.post(reverse("identity:erase"), follow=True).status_code == 200
    assert not LinkedIdentity.objects.exists()


@pytest.mark.usefixtures("deferring")
def test_what_others_see_of_a_person_whose_columns_are_deferred(service, mailoutbox):
    user = make_user(email="ada@example.org")
    assert hand_in(browser_of(user)).status_code == 302
    assert mailoutbox[-1].to == ["ada@example.org"]

    identity, operator = LinkedIdentity.objects.get(), operators.superuser()
    page = operators.page(operator, operators.IDENTITY, identity.pk)
    assert "ada@example.org" in page
    for action in ("revoke", "disconnect", "erase"):
        pressed = operators.press(operator, action, identity)
        assert pressed.status_code in (200, 302), action


# Times at the edge of the calendar, as a service may write "never"


@pytest.mark.parametrize(
    "edge", ["9999-12-31T23:59:59-14:00", "0001-01-01T00:00:00+14:00"]
)
def test_every_page_opens_with_times_at_the_calendars_edges(
    service, client, settings, edge
):
    """After a sign-in and events with claims, KYC status and times at the edge, in every zone."""
    value = {"verified": True, "issued_at": edge, "expires_at": edge}
    service.disclosed = {"age_over_18": value, "unique_human": True}
    service.kyc = {"verified_at": edge}
    service.payload = {"exp": 253402300799, "iat": -62135596800}
    assert sign_in(client, "/").status_code == 302
    identity = LinkedIdentity.objects.get()
    valid_until = StoredClaim.objects.get(claim_type="age_over_18").valid_until
    assert valid_until is not None
    assert (valid_until > timezone.now()) is edge.startswith("9999")
    about = {"status": "verified", "expires_at": edge, "verified_at": edge}
    for event_type in ("kyc.verified", "claim.revoked", "consent.granted", "kyc.odd"):
        body = event_body(event_type, **about)
        body = re.sub(rb'"timestamp": "[^"]+"', f'"timestamp": "{edge}"'.encode(), body)
        assert post(body).status_code == 200

    operator = operators.superuser()
    # As far east and west as people live.
    for settings.TIME_ZONE in ("Pacific/Kiritimati", "Pacific/Pago_Pago"):
        for name in ("identity:account", "identity:download", "identity_api:me"):
            assert client.get(reverse(name)).status_code == 200, name
        for name in (operators.IDENTITIES, operators.EVENTS):
            operators.page(operator, name)
        operators.page(operator, operators.IDENTITY, identity.pk)
        for event in WebhookEvent.objects.all():
            operators.page(operator, operators.EVENT, event.pk)


# A middleware that opens a transaction around every request, as django-reversion's


class RolledBack(Exception):
    """The response is an error."""


def in_a_transaction(get_response: Any) -> Any:
    """What a refused request has written is rolled back."""

    def middleware(request: HttpRequest) -> Any:
        try:
            with transaction.atomic():
                response = get_response(request)
                if response.status_code >= 400:
                    raise RolledBack
        except RolledBack:
            pass
        return response

    return middleware


@pytest.fixture
def site(service: FakeService, settings: Any) -> FakeService:
    settings.MIDDLEWARE = [f"{__name__}.in_a_transaction", *settings.MIDDLEWARE]
    return service


ACTS = {
    "a code": lambda: hand_in(browser_of(make_user())),
    "an event": lambda: post(event_body("kyc.verified")),
    "a callback": lambda: sign_in(Client()),
}


@pytest.mark.parametrize("act", ACTS.values(), ids=ACTS)
def test_nothing_is_sent_or_stored(site, act):
    """A rollback would bring back a code that is spent, or lose an event that meets a sign-in."""
    with pytest.raises(RuntimeError, match="commits in steps"):
        act()
    assert not site.calls("request")
    assert not site.calls("token")
    assert not ConnectRedemption.objects.exists()
    assert not LinkedIdentity.objects.exists()
    assert not WebhookEvent.objects.exists()
    assert not AuthorizationRequest.objects.exclude(consumed_at=None).exists()


# A live application over plain http: no page, no cookie, no code, no session

CALLBACK = "https://site.example/identity/callback/"
DEEDS = ("login", "connect", "disconnect")
REQUESTS = [
    *(("GET", f"identity:{name}") for name in ("callback", *PAGES)),
    *(("POST", f"identity:{name}") for name in DEEDS),
    *(("POST", f"identity_api:{name}") for name in (*DEEDS, "callback")),
    ("GET", "identity_api:me"),
]


@pytest.fixture
def browser(settings: Any) -> Client:
    """Somebody with a linked identity, signed in with a password."""
    settings.DJANGO_IDENTITY = {
        **settings.DJANGO_IDENTITY, **LIVE, "REDIRECT_URI": CALLBACK,
    }  # fmt: skip
    user = make_user()
    make_identity(user, environment="live")
    return browser_of(user)


@pytest.mark.parametrize(("method", "name"), REQUESTS)
def test_nothing_is_served_or_done(browser, caplog, method, name):
    response = browser.generic(method, reverse(name))
    text = response.content.decode()
    assert response.status_code == 403
    if name.startswith("identity_api:"):
        assert json.loads(text)["code"] == "plain_http_refused"
    else:
        assert "<code>plain_http_refused</code>" in text
    assert "subject-1" not in text
    assert not response.cookies
    assert response["Cache-Control"] == "private, no-store"
    (line,) = lines_of_ours(caplog)
    assert " code=plain_http_refused " in line
    assert LinkedIdentity.objects.count() == 1
    assert not AuthorizationRequest.objects.exists()
