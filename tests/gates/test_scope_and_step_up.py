"""Gates that ask for one scope more, or for a sign-in of lately, when the person comes to them."""

import re
from contextlib import nullcontext, suppress
from urllib.parse import parse_qs, urlsplit

import pytest
from django.contrib.auth.models import AnonymousUser
from django.core.exceptions import ImproperlyConfigured
from django.http import HttpResponse
from django.template import Context, Template
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from django_identity.api.permissions import HasScope
from django_identity.exceptions import ReauthorizationNeeded
from django_identity.gates import Gate, claims_of, closed_to, scope_required
from django_identity.lifecycle.ground import sessions
from django_identity.lifecycle.operators import interventions
from django_identity.lifecycle.said.tokens import access_token_for
from django_identity.lifecycle.standing import step_up
from django_identity.models import LinkedIdentity, StoredClaim, TokenGrant
from django_identity.policy import IdentityPolicy
from tests.deliveries import deliver
from tests.factories import again, make_identity, make_user
from tests.fake_service import FakeService
from tests.gates.gated_views import Endpoint, answer_of, view
from tests.gates.scope_and_step_up_urls import PART, Papers
from tests.sign_in import begin, come_back, sign_in
from tests.views.connect.pages import browser_of, hand_in

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.urls("tests.gates.scope_and_step_up_urls"),
]

SCOPE = "documents:read"
BASE = "profile:read kyc:read claims:read"
FACES = ("/papers/", "/papers/class/", "/papers/api/")
PAYOUTS = ("/payout/", "/payout/async/", "/payout/class/", "/payout/api/")


@pytest.fixture
def browser(service: FakeService, settings: pytest.FixtureRequest) -> Client:
    later = [SCOPE, "documents:metadata"]
    settings.DJANGO_IDENTITY = service.settings(LATER_SCOPES=later, DOCUMENT_KEYS=[])
    browser = Client()
    sign_in(browser)
    return browser


def is_open(browser: Client, address: str = "/papers/") -> bool:
    return browser.get(address).status_code == 200


def asked_of_the_service(browser: Client, scope: str = SCOPE) -> tuple[str, str]:
    """Press the button of a closed gate. Returns the state and the scopes in the address."""
    sent = browser.post(reverse("identity:login"), {"next": "/papers/", "scope": scope})
    query = parse_qs(urlsplit(sent["Location"]).query)
    return query["state"][0], query["scope"][0]


def test_a_sign_in_asks_for_it_only_where_a_gate_does(browser):
    assert not any(is_open(browser, address) for address in FACES)
    state, scopes = asked_of_the_service(browser)
    assert scopes == f"{BASE} {SCOPE}"
    come_back(browser, state)
    assert all(is_open(browser, address) for address in FACES)
    state, scopes = asked_of_the_service(browser, scope="")
    assert scopes == f"{BASE} {SCOPE}"
    come_back(browser, state)
    assert all(is_open(browser, address) for address in FACES)
    deliver("consent.revoked")
    assert not any(is_open(browser, address) for address in FACES)
    assert LinkedIdentity.objects.get().scopes == []


def test_the_page_says_why_and_what(browser, monkeypatch):
    why = "To check your rental contract."
    monkeypatch.setattr(IdentityPolicy, "reasons", {SCOPE: why})
    page = browser.get("/papers/", follow=True).content.decode()
    assert why in page
    assert f'name="scope" value="{SCOPE}"' in page
    [new] = re.findall(r"<li>([^<]*) <strong[^>]*>new</strong>", page)
    assert new.startswith("The content of identity documents")
    page = browser.get(reverse("identity:login")).content.decode()
    assert "The content of identity documents" not in page
    # Of a scope that every sign-in asks for nothing is to be said to the service.
    LinkedIdentity.objects.update(scopes=["claims:read"])
    page = browser.get("/level/", follow=True).content.decode()
    assert "You need to share your verification level" in page
    assert 'name="scope"' not in page


@pytest.mark.parametrize(
    "gated",
    [
        scope_required("document:read")(view),
        Papers.as_view(required_scope="document:read"),
        Endpoint.as_view(permission_classes=[HasScope("document:read")]),
    ],
    ids=["view", "class", "permission"],
)
def test_a_scope_that_the_site_never_asks_for_is_an_error(browser, gated):
    """At the first use: the person would go to the service and back without an end."""
    with pytest.raises(ImproperlyConfigured, match="LATER_SCOPES"):
        answer_of(gated, AnonymousUser())


def test_a_scope_and_a_recent_sign_in_in_a_template(browser, identity_clock):
    assert browser.get("/part/").content == b"closed"
    come_back(browser, asked_of_the_service(browser)[0])
    assert browser.get("/part/").content == b"open"
    identity_clock.advance(minutes=11)
    assert browser.get("/part/").content == b"closed"
    context = Context({"user": LinkedIdentity.objects.get().user})
    for given in ('minutes="10"', "minutes=0", 'scope=""', "scope=nothing"):
        gate = f"{{% identity_gate {given} %}}open{{% end_identity_gate %}}"
        assert Template("{% load identity %}" + gate).render(context) == ""
    assert Template(PART).render(context) == "closed"


@pytest.mark.parametrize("said", [BASE, f"{BASE} documents:metadata"])
def test_what_keeps_it_closed(browser, service, said):
    for error in ("access_denied", "invalid_scope"):
        state, _ = asked_of_the_service(browser)
        assert come_back(browser, state, code="", error=error).status_code >= 400
        assert not is_open(browser)
    state, _ = asked_of_the_service(browser)
    service.token = {"scope": said}
    assert come_back(browser, state)["Location"] == "/papers/"
    page = browser.get("/papers/", follow=True).content.decode()
    assert "You have not allowed this yet" in page
    assert browser.get("/").content


def test_a_refresh_without_the_scope_ends_the_grant(browser, service):
    """The gate closes. A sign-in asks for what else was allowed, and the gate for the rest."""
    come_back(browser, asked_of_the_service(browser)[0])
    identity = LinkedIdentity.objects.get()
    assert identity.grant.scopes == [*BASE.split(), SCOPE]
    for said, opened in ((f"{BASE} {SCOPE}", True), ("", True), (BASE, False)):
        TokenGrant.objects.update(access_expires_at=timezone.now())
        service.token = {"scope": said} if said else {}
        with nullcontext() if opened else pytest.raises(ReauthorizationNeeded):
            access_token_for(identity)
        assert is_open(browser) is opened
        assert bool(claims_of(again(identity.user))) is opened
    assert TokenGrant.objects.get().needs_reauthorization
    assert not StoredClaim.objects.filter(value__isnull=False).exists()
    assert LinkedIdentity.objects.get().scopes == BASE.split()
    assert asked_of_the_service(browser, scope="")[1] == BASE


NARROWER = f"profile:read {SCOPE}"
WIDER = f"{BASE} {SCOPE} documents:metadata kyc:status"


def sign_in_with(service: FakeService, scopes: str) -> None:
    """In another browser, with tokens that run out at once."""
    service.token = {"scope": scopes}
    assert sign_in(Client()).status_code == 302
    TokenGrant.objects.update(access_expires_at=timezone.now())


@pytest.mark.parametrize(
    ("newest", "kept"),
    [(NARROWER, "profile:read"), (WIDER, f"{BASE} kyc:status"), (f"{BASE} openid", "")],
)
def test_a_refresh_with_less_takes_from_the_newest_consent(
    browser,
    service,
    newest,
    kept,
):
    """Its caller read the row before: the person has allowed less since, or more."""
    identity = LinkedIdentity.objects.get()
    if newest != WIDER:
        sign_in_with(service, f"{BASE} {SCOPE}")
        identity = LinkedIdentity.objects.get()
    sign_in_with(service, newest)
    service.token = {"scope": BASE}
    with pytest.raises(ReauthorizationNeeded) if kept else nullcontext():
        access_token_for(identity)
    assert LinkedIdentity.objects.get().scopes == (kept or newest).split()
    assert not is_open(browser)


@pytest.mark.parametrize("newest", [NARROWER, WIDER, ""])
def test_a_late_refresh_with_less_takes_nothing(browser, service, newest):
    """The person has signed in again while it was asked, or has taken the consent back."""
    sign_in_with(service, f"{BASE} {SCOPE}")
    identity = LinkedIdentity.objects.get()

    def come_between() -> None:
        del service.meanwhile["token"]
        if newest:
            service.token = {"scope": newest}
            sign_in(Client())
        else:
            interventions.revoke([LinkedIdentity.objects.get()])

    service.token = {"scope": BASE}
    service.meanwhile["token"] = come_between
    with suppress(ReauthorizationNeeded):
        access_token_for(identity)
    assert LinkedIdentity.objects.get().scopes == newest.split()


@pytest.mark.parametrize("is_linked", [False, True])
def test_a_code_allows_nothing_that_only_a_gate_asks_for(service, settings, is_linked):
    """Also where ``CONNECT_SCOPES`` has the scope too: the code may be another person's."""
    settings.DJANGO_IDENTITY = service.settings(
        LATER_SCOPES=[SCOPE],
        CONNECT_SCOPES=["kyc:status", SCOPE],
    )
    browser = browser_of(make_user())
    if is_linked:
        sign_in(browser)
    assert hand_in(browser).status_code == 302
    assert not any(is_open(browser, address) for address in FACES)
    assert SCOPE not in LinkedIdentity.objects.get().scopes
    come_back(browser, asked_of_the_service(browser)[0])
    assert hand_in(browser, "CNX-AB12-CD35").status_code == 302
    assert all(is_open(browser, address) for address in FACES)


@pytest.mark.parametrize("is_linked", [False, True])
def test_a_code_brings_no_level_that_only_a_gate_asks_for(service, settings, is_linked):
    """A rejection would not be covered, and so would not close it."""
    settings.DJANGO_IDENTITY = service.settings(
        SCOPES=["profile:read"],
        LATER_SCOPES=["kyc:read", "kyc:status"],
    )
    user = make_user()
    browser = browser_of(user)
    if is_linked:
        service.token = {"scope": "profile:read"}
        sign_in(browser)
    assert hand_in(browser).status_code == 302
    assert LinkedIdentity.objects.get().kyc_level == ""
    assert closed_to(Gate(kyc_level="level_1"), again(user)) is not None


@pytest.mark.parametrize(
    "scope",
    ["openid", "claims:read", "documents:read openid", "x\ny"],
)
def test_a_request_names_nothing_that_the_site_has_not(browser, scope):
    assert asked_of_the_service(browser, scope)[1] == BASE
    page = browser.get(reverse("identity:login"), {"missing": scope}).content.decode()
    assert "You need" not in page
    refused = begun_by_json(browser, scope)
    assert refused.status_code == 400
    assert refused.json()["code"] == "scope_refused"


def begun_by_json(browser: Client, scope: str) -> HttpResponse:
    address, wanted = reverse("identity_api:login"), {"scope": scope}
    return browser.post(address, wanted, content_type="application/json")


def test_a_front_end_names_the_scope(browser):
    answer = browser.get("/papers/", headers={"Accept": "application/json"})
    told = answer.json()
    assert answer.status_code == 403
    assert told["code"] == "scope_missing"
    begun = begun_by_json(browser, told["missing"]).json()
    query = parse_qs(urlsplit(begun["authorization_url"]).query)
    assert query["scope"] == [f"{BASE} {SCOPE}"]


def came_back_lately(browser: Client, address: str = "/payout/") -> bool:
    return is_open(browser, address)


def test_open_for_a_while_after_a_sign_in(browser, identity_clock):
    assert all(came_back_lately(browser, address) for address in PAYOUTS)
    identity_clock.advance(minutes=6)
    # A subclass that asks for more.
    opened = [each for each in PAYOUTS if came_back_lately(browser, each)]
    assert opened == ["/payout/", "/payout/async/", "/payout/api/"]
    identity_clock.advance(minutes=5)
    assert not any(came_back_lately(browser, address) for address in PAYOUTS)
    sign_in(browser)
    assert all(came_back_lately(browser, address) for address in PAYOUTS)


def test_a_closed_gate_leads_through_a_renewal_back_to_the_page(
    browser,
    identity_clock,
):
    """The page of a form is shown again; what was posted is not sent a second time."""
    identity_clock.advance(minutes=11)
    sent = browser.post("/payout/?to=max", {"amount": "7"})
    asked = parse_qs(urlsplit(sent["Location"]).query)
    assert asked == {"next": ["/payout/?to=max"], "missing": ["recent_sign_in"]}
    page = browser.get(sent["Location"]).content.decode()
    assert "Confirm that it is you" in page
    for address in ("/payout/", "/payout/api/"):
        answer = browser.get(address, headers={"Accept": "application/json"})
        told = answer.json()
        assert answer.status_code == 403
        assert told["code"] == "sign_in_not_recent"
        assert told["missing"] == "recent_sign_in"
        assert told["recovery"] == "restart"
    arrived = sign_in(browser, asked["next"][0])
    assert arrived["Location"] == "/payout/?to=max"
    assert came_back_lately(browser)


def test_other_browsers_and_other_people_do_not_count(browser, service):
    other = Client()
    other.force_login(LinkedIdentity.objects.get().user)
    assert not came_back_lately(other)
    state = begin(other)
    service.subject = "somebody-else"
    assert come_back(other, state).status_code != 302
    assert not came_back_lately(other)


def test_a_session_key_that_somebody_else_knows_is_not_confirmed(
    browser,
    identity_clock,
):
    session = browser.session
    session["basket"] = "kept"
    session.save()
    identity_clock.advance(minutes=11)
    thief = Client()
    thief.cookies["sessionid"] = browser.cookies["sessionid"].value
    sign_in(browser)
    assert came_back_lately(browser)
    assert browser.session["basket"] == "kept"
    assert not came_back_lately(thief)


def test_a_replayed_or_refused_callback_confirms_nobody(browser, identity_clock):
    first = begin(browser)
    come_back(browser, first)
    identity_clock.advance(minutes=11)
    come_back(browser, first)
    assert not came_back_lately(browser)
    come_back(browser, begin(browser), code="", error="access_denied")
    assert not came_back_lately(browser)
    state = begin(browser)
    browser.logout()
    assert come_back(browser, state).status_code != 302
    assert not came_back_lately(browser)


def test_a_cookie_from_before_the_sign_in_opens_nothing(browser, settings):
    settings.SESSION_ENGINE = "django.contrib.sessions.backends.signed_cookies"
    browser = Client()
    browser.force_login(LinkedIdentity.objects.get().user)
    before = browser.cookies["sessionid"].value
    sign_in(browser)
    assert came_back_lately(browser)
    browser.cookies["sessionid"] = before
    assert not came_back_lately(browser)


def test_a_principal_with_a_token_needs_its_own_session(browser):
    """A token of one person beside the cookie of another: neither of the two came back."""
    session = browser.session
    user = make_user(username="somebody-else")
    make_identity(user, subject="somebody-elses")
    assert closed_to(Gate(minutes=10), user, session=session) is not None
    came_back = LinkedIdentity.objects.first().user
    assert closed_to(Gate(minutes=10), came_back, session=session) is None
    assert closed_to(Gate(minutes=10), came_back) is not None


def test_what_is_no_recent_sign_in(browser):
    """One from the future, a long past one, and what another app may write under the name."""
    session = browser.session
    mark, at = session[step_up.KEY]
    past = at - 10 * 24 * 60 * 60
    others = ("text", ["1.0"], ["1.0", "now"], [None, None], {"a": 1}, None, 7)
    for held in ([mark, at + 60], [mark, past], {"default": [mark, at]}, *others):
        session[step_up.KEY] = held
        session.save()
        assert not came_back_lately(browser), held


def test_an_htmx_part_leads_to_no_page_of_others(browser, identity_clock):
    """A part of a page leads to the page that confirms, and back to a page of the site."""
    identity_clock.advance(minutes=11)
    page = "http://evil.example/a/"
    headers = {"HX-Request": "true", "HX-Current-URL": page}
    answer = browser.post("/payout/", headers=headers)
    assert answer.status_code == 204
    assert parse_qs(urlsplit(answer["HX-Redirect"]).query)["next"] == ["/payout/"]


def test_it_ends_with_the_identity_and_its_sessions(browser):
    """Also in a session of the site's own sign-in, which goes on."""
    user = LinkedIdentity.objects.get().user
    local = Client()
    local.force_login(user)
    sign_in(local)
    assert came_back_lately(local)
    sessions.sign_out_everywhere(user)
    assert not came_back_lately(local)
