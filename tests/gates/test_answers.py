"""What a gate answers: nothing of its own where it is open; closed, it says what is missing."""

import json
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.models import AnonymousUser, User
from django.core.exceptions import ImproperlyConfigured
from django.http import HttpRequest, HttpResponse
from django.test import Client, override_settings
from django.urls import path
from django.utils.translation import override
from django.views.decorators.cache import cache_page, never_cache
from rest_framework.permissions import IsAdminUser

from django_identity.api.permissions import HasKycLevel
from django_identity.gates import (
    Closed,
    Gate,
    KycLevelRequiredMixin,
    claim_required,
    closed_response,
    closed_to,
    kyc_level_required,
)
from django_identity.models import LinkedIdentity
from django_identity.policy import IdentityPolicy
from django_identity.texts.labels import heading_of
from tests.factories import again, make_identity, make_user
from tests.gates import gated_views
from tests.gates.gated_views import (
    LACKS,
    SECRET,
    AsyncPage,
    Endpoint,
    Page,
    VerifiedMixin,
    answer_of,
    async_view,
    verified,
    view,
)
from tests.problems import MEMBERS

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.urls(__name__)]

# Over six: the page counts them, and names them where they are folded.
EUROPE = (
    "AT|BE|BG|HR|CY|CZ|DK|EE|FI|FR|DE|GR|HU|IE|IT|LV|LT|LU|MT|NL|PL|PT|RO|SK|SI|ES|SE"
)
european = claim_required(f"country_resident={EUROPE}")
neighbourly = claim_required("country_resident=GH|PT|FR", on_closed="forbid")


def told(request: HttpRequest, closed: Closed) -> HttpResponse:
    return HttpResponse(closed.missing, status=418)


def decorated(page: Any, **chosen: Any) -> Any:
    return kyc_level_required("level_3", **chosen)(page)


def mixed(page: Any, **chosen: Any) -> Any:
    asked = {"required_kyc_level": "level_3", **chosen}
    return type("Gated", (KycLevelRequiredMixin, page), asked).as_view()


def asking(**chosen: Any) -> Any:
    """A view with a question of its own."""

    def page(request: HttpRequest) -> Any:
        closed = closed_to(Gate(kyc_level="level_3"), request.user)
        if closed is not None:
            return closed_response(request, closed, **chosen)
        return view(request)

    return page


WAYS = {
    "view": lambda **chosen: decorated(view, **chosen),
    "async view": lambda **chosen: decorated(async_view, **chosen),
    "class": lambda **chosen: mixed(Page, **chosen),
    "async class": lambda **chosen: mixed(AsyncPage, **chosen),
    "own question": asking,
}


@pytest.mark.parametrize("way", WAYS)
def test_a_redirect_names_what_is_missing(user, way):
    gated = WAYS[way]()

    answer = answer_of(gated, user)
    posted = answer_of(gated, user, "post")
    htmx = answer_of(gated, AnonymousUser(), hx_request="true")

    back = "next=%2Fhere%2F%3Fa%3D1&missing=level_3"
    assert answer["Location"] == f"/identity/login/?{back}"
    assert posted["Location"] == "/identity/login/?missing=level_3"
    assert answer_of(gated, AnonymousUser()).status_code == 302
    assert htmx.status_code == 204
    assert htmx["HX-Redirect"][:17] == "/identity/login/?"
    LinkedIdentity.objects.update(kyc_level="level_3")
    assert answer_of(gated, again(user)).content == SECRET
    # Of several claims the first that is missing, with the very value.
    several = claim_required("age_over_18", "country_resident=GH", "unique_human")
    location = answer_of(several(view), user)["Location"]
    assert location.endswith("&missing=country_resident%3DGH")


@pytest.mark.parametrize("way", WAYS)
def test_a_closed_gate_forbids_if_that_was_chosen(user, way):
    gated = WAYS[way](on_closed="forbid")

    page = answer_of(gated, user, hx_request="true")
    said = answer_of(gated, AnonymousUser(), accept="application/json")

    assert page.status_code == 403
    assert page["Cache-Control"] == "private, no-store"
    # It has a button that signs somebody in.
    assert page["X-Frame-Options"] == "DENY"
    assert b'<meta name="referrer" content="same-origin">' in page.content
    assert said.status_code == 401
    assert json.loads(said.content)["code"] == "not_signed_in"


@pytest.mark.parametrize("accept", ["text/html", "*/*", "", "image/png"])
@pytest.mark.parametrize("way", WAYS)
def test_a_problem_whatever_the_request_accepts(user, way, accept):
    gated = WAYS[way](on_closed="problem")
    for asker, status in ((user, 403), (AnonymousUser(), 401)):
        answer = answer_of(gated, asker, accept=accept, hx_request="true")
        assert answer.status_code == status
        assert answer["Content-Type"] == "application/problem+json"
        assert json.loads(answer.content)["missing"] == "level_3"
        assert answer["Cache-Control"] == "private"
        assert "Cookie" in answer["Vary"]
        assert answer.get("WWW-Authenticate") == ("Session" if status == 401 else None)


@pytest.mark.parametrize("on_closed", [None, "", "forbidden", 403])
def test_an_answer_that_there_is_not_is_an_error(user, on_closed):
    """And no redirect that the site did not mean."""
    with pytest.raises(
        ImproperlyConfigured,
        match='"redirect", "forbid", "problem" or a callable',
    ):
        answer_of(asking(on_closed=on_closed), user)


def test_a_callable_answers_for_a_closed_gate(user):
    heard: list[Closed] = []

    def answer(request: HttpRequest, closed: Closed) -> HttpResponse:
        heard.append(closed)
        return HttpResponse(status=418)

    gated = claim_required("country_resident=GH", on_closed=answer)(view)
    for asker in (user, AnonymousUser()):
        for accept in ("text/html", "application/json"):
            assert answer_of(gated, asker, accept=accept).status_code == 418
    somebody, _, nobody, _ = heard
    assert somebody.code == "claim_missing"
    assert somebody.missing == "country_resident"
    assert somebody.asked == "country_resident=GH"
    assert somebody.shortfall.reason == "other_value"
    assert somebody.shortfall.held == "NG"
    assert nobody.code == "not_signed_in"
    assert nobody.shortfall is None


def test_a_class_may_answer_itself(user):
    """A method has its view; a function of the request stands there as a static method."""

    class Gated(KycLevelRequiredMixin, Page):
        required_kyc_level = "level_3"
        on_closed = staticmethod(told)

    class Own(Gated):
        def on_closed(self, request: HttpRequest, closed: Closed) -> HttpResponse:
            return HttpResponse(f"{type(self).__name__} {closed.missing}")

    assert answer_of(Gated.as_view(), user).content == b"level_3"
    assert answer_of(Own.as_view(), user).content == b"Own level_3"
    assert answer_of(Own.as_view(on_closed=told), user).content == b"level_3"


def test_an_answer_that_is_none_opens_nothing(user):
    for way in ("view", "async view"):
        gated = WAYS[way](on_closed=lambda request, closed: None)
        assert answer_of(gated, user) is None


# A claim with one of several values


def test_the_person_is_told_all_of_them(user):
    assert closed_to(Gate("country_resident=GH|NG|PT"), user) is None
    closed = closed_to(Gate("country_resident=PT|FR|ES"), user)
    assert closed is not None
    assert closed.missing == "country_resident"
    assert closed.problem()["missing"] == "country_resident=PT|FR|ES"
    with override("fr"):
        assert ": Portugal, France ou Espagne" in heading_of(closed.asked)


def test_a_few_are_named_and_many_are_counted(user, monkeypatch):
    """The names of many are there, folded. The site explains the claim once, for all values."""
    why = "We deliver nowhere else."
    monkeypatch.setattr(IdentityPolicy, "reasons", {"country_resident": why})
    browser, stranger = Client(), Client()
    browser.force_login(user)

    few = browser.get("/neighbours/").content.decode()

    assert "You need to live in Ghana, Portugal or France" in few
    assert why in few
    assert "Show the countries" not in few
    for reader in (browser, stranger):
        many = reader.get("/europe/", follow=True).content.decode()
        assert "You need to live in one of 27 countries" in many
        assert "<li>Slovenia</li>" in many
    for language, words in (("ar", "أحد 27 بلدًا"), ("pt-br", "um de 27 países")):
        with override(language):
            assert words in heading_of(f"country_resident={EUROPE}")


# In whole requests: what caches keep, and the one body of a refusal


JSON, PROBLEM = "application/json", "application/problem+json"
LOGIN_REQUIRED = "django.contrib.auth.middleware.LoginRequiredMiddleware"
on_strict_site = override_settings(MIDDLEWARE=[*settings.MIDDLEWARE, LOGIN_REQUIRED])

cached = cache_page(60)


def denied(request: HttpRequest, closed: Any) -> HttpResponse:
    return HttpResponse(f"denied {request.user.pk}")


class AsyncVerified(VerifiedMixin, AsyncPage):
    pass


PERMISSIONS = [HasKycLevel("level_2") | IsAdminUser]
urlpatterns = [
    path("cached/decorator/", cached(verified(view))),
    path("cached/async-class/", cached(AsyncVerified.as_view())),
    path(
        "cached/answered/",
        cached(kyc_level_required("level_3", on_closed=denied)(view)),
    ),
    path(
        "cached/permission/",
        cached(Endpoint.as_view(permission_classes=PERMISSIONS)),
    ),
    path("europe/", european(view)),
    path("neighbours/", neighbourly(view)),
    *gated_views.urlpatterns,
]
#: The gate of each view that is asked first.
PAGES = {
    "decorators": "age_over_18",
    "async-decorators": "age_over_18",
    "classes": "age_over_18",
    "async-classes": "level_2",
}
CACHED = ("decorator", "async-class", "answered", "permission")


def ask(user: User | None, address: str, accept: str = "*/*") -> Any:
    browser = Client()
    if user is not None:
        browser.force_login(user)
    return browser.get(f"/{address}/", headers={"accept": accept})


def test_nobody_sees_a_gated_page_from_the_cache(user):
    other = make_user("bola")
    make_identity(other, subject="bola")
    for address in CACHED:
        first = ask(user, f"cached/{address}")
        assert first.status_code == 200
        assert ask(None, f"cached/{address}").content != first.content
        is_same = ask(other, f"cached/{address}").content == first.content
        assert is_same is (address != "answered")
    LinkedIdentity.objects.update(consent="revoked")
    for address in CACHED:
        is_open = ask(user, f"cached/{address}").status_code == 200
        assert is_open is (address == "answered")


def test_every_answer_says_that_it_is_private(user):
    for asker in (user, make_user("eve"), None):
        for address in CACHED:
            answer = ask(asker, f"cached/{address}")
            assert "private" in answer["Cache-Control"], address
            assert "Cookie" in answer["Vary"]
    varies = answer_of(verified(view), AnonymousUser())["Vary"]
    assert {"Cookie", "Accept", "HX-Request"} <= {*varies.split(", ")}
    assert "Authorization" in ask(None, "cached/permission")["Vary"]


def test_a_word_of_the_views_own(user):
    """``no-store`` is more than private and stays; nothing else lets a cache store the answer."""
    assert "no-store" in answer_of(verified(never_cache(view)), user)["Cache-Control"]
    browser = Client()
    browser.force_login(user)
    for said in ("no-store", "public"):
        answer = browser.get(f"/cached/permission/?Cache-Control={said}")
        assert answer["Cache-Control"] == "private, no-store"
    for said in ("public, max-age=60", "no-cache=x"):
        page = HttpResponse(SECRET, headers={"Cache-Control": said})
        below = cached(verified(lambda request, page=page: page))
        assert answer_of(below, user).content == SECRET
        assert answer_of(below, AnonymousUser()).status_code == 302


# One body, under ``LoginRequiredMiddleware``


def the_problem(response: Any, status: int) -> dict[str, Any]:
    """The body, which says its own status and is no page for a browser."""
    assert response.status_code == status
    assert response["Content-Type"] == PROBLEM
    body: dict[str, Any] = response.json()
    assert body.keys() == MEMBERS
    assert body["status"] == status
    assert body["type"] == "about:blank"
    return body


@pytest.mark.parametrize(
    ("lacking", "code", "missing", "recovery"),
    [
        ("the claim", "claim_missing", "age_over_18", "verify"),
        ("a claim that holds", "claim_missing", "age_over_18", "restart"),
        ("the value", "claim_missing", "country_resident=NG", "verify"),
        ("the level", "kyc_level_missing", "level_2", "verify"),
    ],
)
@on_strict_site
def test_who_lacks_one_thing_is_told_which(user, lacking, code, missing, recovery):
    assert all(SECRET in ask(user, address, JSON).content for address in PAGES)
    LACKS[lacking]()
    for address in PAGES:
        body = the_problem(ask(user, address, JSON), 403)
        told = (body["code"], body["missing"], body["recovery"], body["title"])
        assert told == (code, missing, recovery, "Forbidden")
        assert body["detail"].count(". ") >= 1


@on_strict_site
def test_nobody_is_told_to_sign_in_by_the_gate():
    """401 with a challenge, and not the middleware's redirect; a page learns what is missing."""
    for address, missing in PAGES.items():
        for accept in (JSON, PROBLEM, f"{JSON};q=0.5, text/html;q=0.4"):
            response = ask(None, address, accept)
            body = the_problem(response, 401)
            assert body["code"] == "not_signed_in"
            assert body["missing"] == missing
            step = ". Continue with your identity service to show it."
            assert body["detail"] == heading_of(missing) + step
            assert response["WWW-Authenticate"] == "Session"
        # A header that cannot be read asks for a page.
        for accept in ("text/html;x*=unknown'en'%E2", f"{JSON};q*=x'y'z", ";;"):
            assert ask(None, address, accept).status_code == 302
        query = f"next=%2F{address}%2F&missing={missing}"
        assert ask(None, address)["Location"] == f"/identity/login/?{query}"
