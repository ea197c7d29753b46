"""What people are told on their way: no dead end, and nothing is told twice."""

import re
from typing import Any

import pytest
from django.http import HttpRequest, HttpResponse
from django.test import Client, RequestFactory
from django.urls import reverse

from django_identity.backends import BACKEND_PATH
from django_identity.exceptions import IdentityError
from django_identity.exceptions.table import ERRORS, Recovery
from django_identity.gates import Gate, closed_to
from django_identity.lifecycle.leaving import erasure
from django_identity.lifecycle.operators import interventions
from django_identity.models import LinkedIdentity
from django_identity.policy import IdentityPolicy
from django_identity.reasons import Reason
from django_identity.texts.advice import REASONS
from django_identity.web import answers, flow
from tests.deliveries import deliver
from tests.factories import again, make_claim, make_identity, make_user, people
from tests.sign_in import begin, come_back, sign_in
from tests.views.bad_input.refusals import CutOff, lines_of_ours
from tests.views.connect.pages import LOCAL, browser_of, buttons

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _account_page(settings: Any) -> None:
    """The service has a page to which people can be sent."""
    given = settings.DJANGO_IDENTITY
    address = "https://service.example/me"
    settings.DJANGO_IDENTITY = {**given, "SERVICE_ACCOUNT_URL": address}


OPEN = "Open your identity service"
VERIFY = "Get verified"
AGAIN = "Check again with your identity service"
BACK = "Back to this site"
#: Reason -> the person, what differs from their row, what is asked for, and the buttons.
STEPS: dict[str, tuple[str, dict[str, Any], str, list[str]]] = {
    "not_linked": (
        "of the other environment",
        {},
        "age_over_18",
        ["Connect your identity service"],
    ),
    "consent_revoked": ("revoked", {}, "age_over_18", ["Allow again"]),
    "ended_by_site": (
        "revoked",
        {"revoked_by": "site"},
        "age_over_18",
        ["Connect again"],
    ),
    "code_alone": (
        "by code",
        {},
        "age_over_18",
        ["Continue with your identity service"],
    ),
    # Verifying again would be a circle.
    "not_confirmed": ("of a listed claim", {}, "age_over_18", [OPEN, BACK]),
    "unread": ("not read", {}, "age_over_18", [AGAIN]),
    "run_out": ("of a claim that ran out", {}, "age_over_18", [AGAIN]),
    "revoked": ("of a revoked claim", {}, "age_over_18", [VERIFY, AGAIN]),
    "other_value": ("of another country", {}, "country_resident=NG", [OPEN, BACK]),
    "not_verified": ("not verified", {}, "age_over_18", [VERIFY, AGAIN]),
    "rejected": ("rejected", {}, "age_over_18", [OPEN, AGAIN]),
    "unverifiable": (
        "rejected",
        {"kyc_status": "verified", "last_error": "credential_rejected"},
        "age_over_18",
        [BACK],
    ),
    "scope_not_given": (
        "without the scopes",
        {},
        "claims:read",
        ["Decide at your identity service"],
    ),
    "not_recent": (
        "proven",
        {},
        "recent_sign_in",
        ["Confirm with your identity service"],
    ),
    "lower_level": (
        "of a lower level",
        {},
        "level_2",
        ["Continue the verification", AGAIN],
    ),
}


def test_each_reason_has_a_next_step_and_a_way_back():
    # The account page alone has this one, whose button is the same form.
    assert STEPS.keys() | {"permission_ended"} == REASONS.keys() == {*Reason}
    known = people()
    known["of another country"] = make_user("of another country")
    linked = make_identity(known["of another country"], subject="of another country")
    make_claim(linked, "country_resident", {"value": "GH"})
    for reason, (who, changes, missing, wanted) in STEPS.items():
        identity = LinkedIdentity.objects.get(user=known[who])
        identity.set_columns(changes)
        identity.save(update_fields=changes)

        address = reverse("identity:login")
        asked = {"missing": missing, "next": "/adults/"}
        response = browser_of(known[who]).get(address, asked)

        page = response.content.decode()
        assert response.context["shortfall"].reason == reason
        assert buttons(page.partition("<main")[2]) == wanted, reason
        came_back = f'href="{address}?next=/adults/"'
        assert 'name="next" value="/adults/"' in page or came_back in page, reason
        assert "%(" not in page
        assert ("What your identity service will share" in page) is (
            reason != "not_recent" and BACK not in wanted
        )


def test_a_site_that_cannot_verify_says_so_with_a_reference(user, browser):
    identity = make_identity(user, last_error="credential_rejected")
    told = f"Tell the people who run this site. Your reference is the number {identity.pk}."
    closed_gate = reverse("identity:login", query={"missing": "age_over_18"})
    for address in (closed_gate, reverse("identity:account")):
        page = browser.get(address).content.decode()
        assert "cannot verify this at the moment" in page
        assert "a few seconds" not in page
        assert told in page
    closed = closed_to(Gate("age_over_18"), again(user))
    assert closed is not None
    problem = closed.problem()
    assert told in problem["detail"]
    assert problem["recovery"] == "contact"


KEY = "x" * 43


def callback() -> HttpRequest:
    """A request of a browser in which a sign-in began."""
    return RequestFactory().get("/", HTTP_COOKIE=f"identity_browser={KEY}")


def told(client: Client, error: IdentityError) -> HttpResponse:
    """The page to which a callback leads after ``error``."""
    led = answers.keep_error(callback(), error)
    assert "?" not in led["Location"]
    client.cookies["identity_browser"] = KEY
    client.cookies[answers.COOKIE] = led.cookies[answers.COOKIE].value
    return client.get(led["Location"])


WITH_PASSWORD = "Sign in with a password"
#: What the person can do next -> the buttons of the page, if the site has a sign-in of its own.
BUTTONS = {
    Recovery.RETRY: ["Try again"],
    Recovery.RESTART: ["Start again"],
    Recovery.SIGN_IN_TO_LINK: ["Sign in"],
    Recovery.VERIFY: [VERIFY],
    Recovery.CONTACT: [BACK],
}
#: Code -> the buttons of its page, where another step helps.
OWN_BUTTONS = {
    "access_denied": ["Start again", BACK],
    "linked_by_code": [WITH_PASSWORD, "Start again"],
    "sign_in_not_allowed": [WITH_PASSWORD],
    "user_holds_another": ["Your details"],
}
WITHOUT_LOCAL = {"linked_by_code": ["Start again"]}


@pytest.mark.parametrize(
    "code",
    sorted(ERRORS.keys() - {"verification_policy_not_met.poa"}),
)
@pytest.mark.parametrize("local", ["/accounts/login/", None], ids=["local", "no local"])
def test_each_refusal_has_a_next_step_and_a_way_back(client, settings, code, local):
    settings.IDENTITY_LOCAL_SIGN_IN_URL = local
    error = IdentityError(code=code, next_url="/adults/")
    wanted = OWN_BUTTONS.get(code, BUTTONS[error.recovery])
    if local is None and error.recovery == Recovery.SIGN_IN_TO_LINK:
        wanted = WITHOUT_LOCAL.get(code, [BACK])
    for _load in range(2):
        response = told(client, error)
        page = response.content.decode()
        assert response.status_code == ERRORS[code].status
        assert buttons(page.partition("<main")[2]) == wanted
        assert '<header class="identity-header"><a href="/">' in page
        assert (error.reference in page) is (code != "access_denied")
    starts_again = {"Start again", "Try again"} & {*wanted}

    assert not starts_again or "next=%2Fadults%2F" in page or 'href="/adults/"' in page


def test_an_answer_is_shown_for_an_hour_in_its_own_browser(client, service):
    make_user("eve", email="ada@example.org")
    first = sign_in(client, "/adults/")
    page = reverse("identity:answer")
    assert first.status_code == 403
    assert first.wsgi_request.get_full_path() == page
    for shown in (first, client.get(page)):
        text = shown.content.decode()
        assert "You have an account here" in text
        assert "<bdi>a***@example.org</bdi>" in text
        assert "ada@example.org" not in text.replace("***", "")
        assert "next%3D%252Fadults%252F" in text
    cookie = client.cookies[answers.COOKIE]
    assert cookie["path"] == page
    assert cookie["httponly"] is True
    assert cookie["max-age"] == 3600
    assert not re.search("adults|email|example", cookie.value)
    other = Client()
    begin(other)
    other.cookies[answers.COOKIE] = cookie.value
    assert other.get(page)["Location"] == reverse("identity:account")
    for forged in ("", "x", cookie.value[:-9] + "AAAAAAAA="):
        client.cookies[answers.COOKIE] = forged
        assert client.get(page)["Location"] == reverse("identity:account")


def test_the_longest_page_that_was_wanted_fits_into_the_cookie(client):
    """Browsers drop a cookie of more than 4 KB."""
    longest = "/" + "ß" * 999
    assert flow.safe_next(longest) == longest
    for refused_too in (f"{longest}ßß", "/\ud800"):
        assert flow.safe_next(refused_too) == ""
    error = IdentityError(code="email_taken", next_url=longest)
    led = answers.keep_error(callback(), error)
    assert len(led.cookies[answers.COOKIE].OutputString()) < 4096
    assert "You have an account here" in told(client, error).content.decode()


def test_pages_name_the_service_and_the_site(client, settings, monkeypatch):
    page = client.get("/identity/login/").content.decode()
    assert "testserver" not in page
    assert "<title>Continue with your identity service</title>" in page
    given = {**settings.DJANGO_IDENTITY, "SERVICE_NAME": "VerifyMe"}
    settings.DJANGO_IDENTITY = given
    monkeypatch.setattr(IdentityPolicy, "help_url", "/help/")
    monkeypatch.setattr(IdentityPolicy, "site_name", "Ajo Circle")
    monkeypatch.setattr(
        IdentityPolicy,
        "reasons",
        {"age_over_18": "A circle is a contract."},
    )
    page = client.get("/identity/login/?missing=age_over_18").content.decode()

    assert "<title>You need to be 18 or older \N{EN DASH} Ajo Circle</title>" in page
    assert (
        "You will go to VerifyMe, sign in there, and decide what Ajo Circle may know."
        in page
    )
    assert "<span>Continue with VerifyMe</span>" in page
    assert "A circle is a contract." in page
    assert '<a href="/help/">Help</a>' in page
    assert "identity service" not in page


@pytest.mark.parametrize(
    ("how", "done"),
    [
        ("sign-in", "You are signed in."),
        ("link", "Your account is connected"),
        ("renewal", "Your details were checked again."),
    ],
)
def test_what_worked_is_said(client, service, how, done):
    """On the page that comes next, but not above a closed gate, which may say the contrary."""
    if how != "sign-in":
        user = make_user()
        client.force_login(user, backend=LOCAL)
    if how == "renewal":
        make_identity(user)
    come_back(client, begin(client, "/gated/"))
    page = client.get("/identity/account/").content.decode()
    assert re.search(f'role="status">{done}[^<]*You are verified at level 2.</p>', page)
    response = come_back(client, begin(client, "/gated/"))
    assert response["Location"] == "/gated/"
    page = client.get("/gated/", follow=True).content.decode()

    assert "<title>You need" in page
    assert "You are verified" not in page
    assert "You are verified" not in client.get("/identity/account/").content.decode()


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ("person", "you took back your consent."),
        ("site", "we ended your connection."),
        ("erasure", "your data here is erased."),
        ("erasure that is pending", "your data here is erased."),
    ],
)
def test_a_session_that_ended_says_why(client, monkeypatch, how, words):
    identity = make_identity(make_user())
    client.force_login(identity.user, backend=BACKEND_PATH)
    if how == "site":
        interventions.revoke([identity])
    elif how == "person":
        deliver("consent.revoked")
    else:
        if how == "erasure that is pending":
            monkeypatch.setattr(IdentityPolicy, "erase_user", lambda *_given: 1 / 0)
        erasure.erase_subject(identity.subject)
    page = client.get(reverse("identity:account"), follow=True).content.decode()
    assert "You were signed out" in page
    assert f": {words}" in page
    # A session of another kind ends with none of these.
    if how == "person":
        client.force_login(identity.user, backend=LOCAL)
        page = client.get(reverse("identity:login")).content.decode()
        assert "signed out" not in page


@pytest.mark.parametrize(
    "name",
    ["login", "connect", "disconnect", "connected", "sign_out"],
)
def test_a_page_that_was_open_too_long(service, name):
    client = Client(enforce_csrf_checks=True)
    user = make_user()
    identity = make_identity(user)
    client.force_login(user, backend=LOCAL)
    response = client.post(reverse(f"identity:{name}"), {"next": "/loans/"})
    page = response.content.decode()
    assert response.status_code == 403
    assert "<title>Error: This page was open too long</title>" in page
    assert f'href="{reverse(f"identity:{name}")}?next=%2Floans%2F"' in page
    identity.refresh_from_db()
    assert service.requests == []


@pytest.mark.parametrize(
    ("headers", "reason"),
    [
        ({"Origin": "https://testserver"}, "CSRF cookie not set."),
        ({}, "Referer checking failed - no Referer."),
        (
            {"Origin": "https://shop.example:8443"},
            "Origin checking failed - https://shop.example:8443 does not match any trusted",
        ),
        (
            {"Referer": "https://ada@shop.example/ada/?token=secret"},
            "Referer checking failed - another address does not match any trusted origins.",
        ),
        (
            {"Referer": "https://shop.example/ada/?token=secret"},
            "Referer checking failed - https://shop.example does not match any trusted origins.",
        ),
    ],
)
def test_the_log_says_why_a_form_was_refused(headers, reason, caplog):
    client = Client(enforce_csrf_checks=True)
    page = client.post(reverse("identity:login"), secure=True, headers=headers)
    assert page.status_code == 403
    (line,) = lines_of_ours(caplog)
    assert "code=form_expired" in line
    assert f"detail={reason}" in line
    assert not re.search(r"\bada\b|token|secret", caplog.text)


CUT_OFF = {"wsgi.input": CutOff(), "content_type": "application/x-www-form-urlencoded"}
BROKEN_FORMS: dict[str, dict[str, Any]] = {
    "cut off": CUT_OFF,
    "no boundary": {"content_type": "multipart/form-data"},
    "odd boundary": {"content_type": "multipart/form-data; boundary=é"},
    "missing parts": {"content_type": "multipart/form-data; boundary=x"},
}


@pytest.mark.parametrize("name", ["login", "connect", "disconnect", "sign_out"])
@pytest.mark.parametrize("how", BROKEN_FORMS.values(), ids=BROKEN_FORMS)
def test_a_form_that_cannot_be_read_is_no_error_of_the_site(name, how, caplog):
    """Django answers it as it refuses a form, and nobody is called for it."""
    client = Client(enforce_csrf_checks=True)
    client.cookies["csrftoken"] = "a" * 32
    page = client.generic("POST", reverse(f"identity:{name}"), b"next=/", **how)
    assert page.status_code in (400, 403)
    assert "identity.sign_in.failed error=" not in caplog.text
    assert not [each for each in caplog.records if each.levelname == "ERROR"]


def test_a_denial_is_calm(client, service):
    state = begin(client, "/adults/")
    query = {"error": "access_denied", "state": state}
    page = client.get(reverse("identity:callback"), query, follow=True).content.decode()
    assert "<title>You did not share anything</title>" in page
    assert "Name, e-mail address, country and photo" in page
    assert 'href="/adults/"' in page
    assert not re.search("Reference|Error|emblem-warning", page)
