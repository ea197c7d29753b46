"""A gate that asks for one scope more, when the person comes to it."""

import re
from contextlib import nullcontext, suppress
from urllib.parse import parse_qs, urlsplit

import pytest
from django.contrib.auth.models import AnonymousUser
from django.core.exceptions import ImproperlyConfigured
from django.template import Context, Template
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from django_identity.api.permissions import HasScope
from django_identity.exceptions import ReauthorizationNeeded
from django_identity.gates import Gate, closed_to, scope_required
from django_identity.lifecycle.operators import interventions
from django_identity.lifecycle.said.tokens import access_token_for
from django_identity.models import LinkedIdentity, TokenGrant
from django_identity.policy import IdentityPolicy
from tests.deliveries import deliver
from tests.factories import again, make_user
from tests.fake_service import FakeService
from tests.gates.gated_views import Endpoint, answer_of, view
from tests.gates.scope_and_step_up_urls import PART, Papers
from tests.sign_in import come_back, sign_in
from tests.views.connect.pages import browser_of, hand_in

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.urls("tests.gates.scope_and_step_up_urls"),
]

SCOPE = "documents:read"
BASE = "profile:read kyc:read claims:read"
FACES = ("/papers/", "/papers/class/", "/papers/api/")


class Explains(IdentityPolicy):
    reasons = {SCOPE: "To check your rental contract."}


@pytest.fixture
def browser(service: FakeService, settings: pytest.FixtureRequest) -> Client:
    settings.DJANGO_IDENTITY = service.settings(
            LATER_SCOPES=[SCOPE, "documents:metadata"],
            POLICY=f"{__name__}.Explains", DOCUMENT_KEYS=[],
        )  # fmt: skip
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
    """A later renewal asks for what was allowed. It ends with the consent."""
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


def test_the_page_says_why_and_what(browser):
    page = browser.get("/papers/", follow=True).content.decode()
    assert "To check your rental contract." in page
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
    """The part is shown to whoever has allowed the scope and came back lately."""
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
    """A refusal, or an answer with less than was asked: signed in as before, and told why."""
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
    assert TokenGrant.objects.get().needs_reauthorization
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
    browser, service, newest, kept
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
        LATER_SCOPES=[SCOPE], CONNECT_SCOPES=["kyc:status", SCOPE]
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
        SCOPES=["profile:read"], LATER_SCOPES=["kyc:read", "kyc:status"]
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
    "scope", ["openid", "claims:read", "documents:read openid", "x\ny"]
)
def test_a_request_names_nothing_that_the_site_has_not(browser, scope):
    assert asked_of_the_service(browser, scope)[1] == BASE
    page = browser.get(reverse("identity:login"), {"missing": scope}).content.decode()
    assert "You need" not in page
    refused = browser.post(
        reverse("identity_api:login"), {"scope": scope}, content_type="application/json"
    )
    assert (refused.status_code, refused.json()["code"]) == (400, "scope_refused")


def test_a_front_end_names_the_scope(browser):
    answer = browser.get("/papers/", headers={"Accept": "application/json"})
    told = answer.json()
    assert answer.status_code == 403
    assert told["code"] == "scope_missing"
    assert told["missing"] == SCOPE
    address, wanted = reverse("identity_api:login"), {"scope": told["missing"]}
    begun = browser.post(address, wanted, content_type="application/json")
    query = parse_qs(urlsplit(begun.json()["authorization_url"]).query)
    assert query["scope"] == [f"{BASE} {SCOPE}"]
