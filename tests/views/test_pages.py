"""The people's pages: what they say, what they may not contain, and at sites of other kinds."""

import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import django
import pytest
from django.contrib.auth.models import User, UserManager
from django.db import transaction
from django.http import HttpRequest
from django.template import Context, RequestContext, Template, TemplateSyntaxError
from django.test import Client, RequestFactory
from django.urls import reverse
from django.utils import timezone, translation

import django_identity
from django_identity.models import (
    AuthorizationRequest,
    ConnectRedemption,
    LinkedIdentity,
    StoredClaim,
    WebhookEvent,
)
from django_identity.templatetags.django_identity_pages import moment
from tests.admin import operators
from tests.deliveries import event_body, post
from tests.factories import (
    make_claim,
    make_grant,
    make_identity,
    make_identity_by_code,
    make_user,
)
from tests.fake_service import FakeService
from tests.sign_in import begin, come_back, sign_in
from tests.views.bad_input.refusals import lines_of_ours
from tests.views.connect.pages import LIVE, browser_of, hand_in

pytestmark = pytest.mark.django_db(transaction=True)

ROOT = Path(django_identity.__file__).parent
TEMPLATES = sorted((ROOT / "templates").rglob("*.html"))
STYLES = sorted((ROOT / "static" / "django_identity").glob("*.css"))
PHYSICAL = re.compile(
    r"(?<![\w-])(?:(?:margin|padding|border|inset)-)?(?:left|right)\s*[:;]",
)
FOREIGN = re.compile(r"(?:src|href|action|url\()\s*=?\s*[\"']?(?:https?:)?//")
GROUPED = re.compile('="[^"]*\\d[.,\u202f\u00a0 ]\\d{3}[^"]*"')
INLINE = re.compile(r"<script|<style|\sstyle\s*=|\son[a-z]+\s*=|javascript:")


def login_page(client: Client, **query: str) -> str:
    response = client.get(reverse("identity:login", query=query))
    return response.content.decode().replace("\xa0", " ")


def test_pages_bring_nothing_inline_and_nothing_of_others():
    """As a strict policy demands. Styles have logical properties alone, for either direction."""
    for template in TEMPLATES:
        refused = f"{INLINE.pattern}|{FOREIGN.pattern}"
        assert not re.search(refused, template.read_text()), template
    for style in STYLES:
        refused = rf"{PHYSICAL.pattern}|@import|url\("
        assert not re.search(refused, style.read_text()), style


@pytest.mark.parametrize(
    "missing",
    [
        "Call +1 555 0100 now",
        "<b>x</b>",
        "age_over_18=" + "x" * 40,
        "a" * 65,
        "x=y=z",
        "\u202e",
        "country_resident=PT|XX",
        "country_resident=PT|",
        "country_resident=|",
        "shoe_size=1|2",
        "country_resident=<b>|PT",
        "age_over_18|unique_human",
    ],
)
def test_a_link_cannot_put_words_into_our_mouth(client, missing):
    assert "You need" not in login_page(client, missing=missing)


def test_the_sign_in_page_says_what_is_needed(client):
    for missing, words in {
        "age_over_18": "You need to be 18 or older",
        "country_resident=NG": "You need to live in Nigeria",
        "level_2": "You need verification at level 2",
    }.items():
        page = login_page(client, missing=missing)
        assert words in page
        assert "Name, e-mail address, country and photo" in page


@pytest.mark.parametrize(
    ("missing", "is_offered"),
    [("", True), ("level_2", True), ("age_over_18", False)],
)
def test_a_code_is_offered_where_it_may_help(missing, is_offered):
    user = make_user()
    page = login_page(browser_of(user), next="/adults/", missing=missing)
    assert ("Use a code from your identity service" in page) is is_offered
    make_identity(user, kyc_level="level_1")
    assert "Use a code" not in login_page(browser_of(user), missing=missing)


def test_the_other_way_in_leads_on(client, settings):
    assert "/accounts/login/?next=%2Fadults%2F" in login_page(client, next="/adults/")
    assert "/accounts/login/" not in login_page(
        browser_of(make_user()),
        next="/adults/",
    )
    settings.IDENTITY_LOCAL_SIGN_IN_URL = "/sign-in/?by=password"
    page = client.get(reverse("identity:login"), {"next": "/adults/"})
    assert (
        page.context["local_sign_in_url"] == "/sign-in/?by=password&next=%2Fadults%2F"
    )
    # Other errors have no use for it, so that a wrong one breaks none of their pages.
    settings.IDENTITY_LOCAL_SIGN_IN_URL = "no-such-page"
    assert client.get(reverse("identity:callback")).status_code == 400


def test_a_page_of_a_live_site_is_not_marked(settings):
    user = make_user()
    make_identity(user, environment="live")
    address = reverse("identity:account")
    assert "Test environment" in browser_of(user).get(address).content.decode()
    settings.DJANGO_IDENTITY = {**settings.DJANGO_IDENTITY, **LIVE}
    page = browser_of(user).get(address, secure=True).content.decode()
    assert "Test environment" not in page


@pytest.mark.parametrize(
    ("language", "words"),
    [
        ("en", "Nov. 21, 2026 9:09 p.m. UTC"),
        ("fr", "21 novembre 2026 21:09 UTC"),
        ("ar", "21 نوفمبر، 2026 9:09 م UTC"),
    ],
)
def test_a_time_is_written_as_the_language_writes_it(language, words):
    """Django knows no date with a time in Arabic, and falls back to the English order."""
    with translation.override(language), timezone.override(UTC):
        assert words in moment(datetime(2026, 11, 21, 21, 9, tzinfo=UTC))


@pytest.mark.parametrize("language", ["en", "fr", "pt-br"])
def test_a_number_for_browsers_is_not_written_for_people(language, settings):
    settings.USE_THOUSAND_SEPARATOR, settings.LANGUAGE_CODE = True, language
    user = make_user(pk=1234567)
    make_claim(make_identity_by_code(user, pk=7654321))
    browser = browser_of(user)
    pages = [
        browser.get(reverse(f"identity:{name}")).content.decode()
        for name in ("connect", "login", "connected", "account", "disconnect", "erase")
    ]
    assert [found for page in pages for found in GROUPED.findall(page)] == []
    assert 'maxlength="1000"' in pages[0]


# ``{% identity_login_button %}`` on a page of the site's own


def render(tag: str, **context: object) -> str:
    request = RequestFactory().get("/")
    return Template("{% load identity %}" + tag).render(
        RequestContext(request, context),
    )


@pytest.mark.parametrize("given", ['size="huge"', 'theme="neon"', 'theme="Filled"'])
def test_an_unknown_look_is_refused(given):
    with pytest.raises(TemplateSyntaxError):
        render("{% identity_login_button " + given + " %}")


def test_what_is_given_is_escaped():
    button = "{% identity_login_button label=evil next=evil %}"
    assert "<script" not in render(button, evil='"><script>alert(1)</script>')


def test_a_plain_page_needs_nothing_else():
    page = render('{% identity_login_button next="/adults/" %}')
    assert page.count("<form") == page.count("<button") == page.count("<svg") == 1
    assert 'method="post" action="/identity/login/"' in page
    assert "csrfmiddlewaretoken" in page
    assert 'name="next" value="/adults/"' in page
    assert page.count("button.css") == 1
    button = page[page.index("<button") :]
    words = re.sub(r"<[^>]+>", " ", button).split()
    assert " ".join(words) == "Continue with your identity service"
    assert 'aria-hidden="true"' in button
    assert not re.search(r"style=|onclick=|<script|<style", page)
    # Also where there is no request, as in a fragment of a page.
    page = Template("{% load identity %}{% identity_login_button %}").render(Context())

    assert "button.css" in page
    assert "csrfmiddlewaretoken" not in page


PAGES = ("login", "account", "connect", "disconnect", "erase", "download")


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


@pytest.mark.parametrize(
    "edge",
    ["9999-12-31T23:59:59-14:00", "0001-01-01T00:00:00+14:00"],
)
def test_every_page_opens_with_times_at_the_calendars_edges(
    service,
    client,
    settings,
    edge,
):
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
        **settings.DJANGO_IDENTITY,
        **LIVE,
        "REDIRECT_URI": CALLBACK,
    }
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


def test_behind_a_proxy_https_is_what_the_proxy_says(browser, settings):
    settings.SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    for scheme, status in (("https", 200), ("http", 403)):
        said = {"X-Forwarded-Proto": scheme}
        assert (
            browser.get(reverse("identity:login"), headers=said).status_code == status
        )
