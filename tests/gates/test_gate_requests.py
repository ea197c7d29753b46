"""Gates in whole requests: what they cost, what caches keep, and the one body of a refusal."""

from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.models import AnonymousUser, User
from django.http import HttpRequest, HttpResponse
from django.test import Client, override_settings
from django.urls import path
from django.views.decorators.cache import cache_page, never_cache
from rest_framework.permissions import IsAdminUser

from django_identity.api.permissions import HasKycLevel
from django_identity.gates import kyc_level_required
from django_identity.models import LinkedIdentity
from django_identity.texts.labels import heading_of
from tests.factories import make_identity, make_user
from tests.gates import gated_views
from tests.gates.gated_views import (
    LACKS,
    SECRET,
    AsyncPage,
    Endpoint,
    VerifiedMixin,
    answer_of,
    verified,
    view,
)
from tests.problems import MEMBERS

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.urls(__name__)]

JSON, PROBLEM = "application/json", "application/problem+json"
LOGIN_REQUIRED = "django.contrib.auth.middleware.LoginRequiredMiddleware"
on_strict_site = override_settings(MIDDLEWARE=[*settings.MIDDLEWARE, LOGIN_REQUIRED])

cached = cache_page(60)


def told(request: HttpRequest, closed: Any) -> HttpResponse:
    return HttpResponse(f"denied {request.user.pk}")


class AsyncVerified(VerifiedMixin, AsyncPage):
    pass


PERMISSIONS = [HasKycLevel("level_2") | IsAdminUser]
urlpatterns = [
    path("cached/decorator/", cached(verified(view))),
    path("cached/async-class/", cached(AsyncVerified.as_view())),
    path(
        "cached/answered/", cached(kyc_level_required("level_3", on_closed=told)(view))
    ),
    path(
        "cached/permission/", cached(Endpoint.as_view(permission_classes=PERMISSIONS))
    ),
    *gated_views.urlpatterns,
]
#: The gate of each view that is asked first.
PAGES = {"decorators": "age_over_18", "async-decorators": "age_over_18", "classes": "age_over_18",
         "async-classes": "level_2"}  # fmt: skip
CACHED = ("decorator", "async-class", "answered", "permission")


def ask(user: User | None, address: str, accept: str = "*/*") -> Any:
    browser = Client()
    if user is not None:
        browser.force_login(user)
    return browser.get(f"/{address}/", headers={"accept": accept})


def test_nobody_sees_a_gated_page_from_the_cache(user):
    """Neither a stranger, nor the same person after a revocation; nor one what another was told."""
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
    """Open or closed. A page, JSON and HTMX get different answers at one address."""
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
    assert (response.status_code, response["Content-Type"]) == (status, PROBLEM)
    body: dict[str, Any] = response.json()
    assert body.keys() == MEMBERS
    assert (body["status"], body["type"]) == (status, "about:blank")
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
    """The same body from every kind of gate, with the value that was asked for."""
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
            assert (body["code"], body["missing"]) == ("not_signed_in", missing)
            step = ". Continue with your identity service to show it."
            assert body["detail"] == heading_of(missing) + step
            assert response["WWW-Authenticate"] == "Session"
        # A header that cannot be read asks for a page.
        for accept in ("text/html;x*=unknown'en'%E2", f"{JSON};q*=x'y'z", ";;"):
            assert ask(None, address, accept).status_code == 302
        query = f"next=%2F{address}%2F&missing={missing}"
        assert ask(None, address)["Location"] == f"/identity/login/?{query}"
