"""A cache above a gate stores nothing of what the gate answers."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser, User
from django.http import HttpRequest, HttpResponse
from django.test import Client, override_settings
from django.urls import include, path
from django.views.decorators.cache import cache_page, never_cache
from rest_framework.permissions import IsAdminUser
from rest_framework.response import Response
from rest_framework.views import APIView

from django_identity.api.permissions import HasKycLevel
from django_identity.gates import kyc_level_required
from django_identity.models import LinkedIdentity
from tests.factories import make_identity, make_user
from tests.gates.gated import AsyncPage, VerifiedMixin, answer_of, view

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.urls(__name__)]

cached = cache_page(60)
adult = kyc_level_required("level_2")


class Api(APIView):
    permission_classes: Any = [HasKycLevel("level_2") | IsAdminUser]

    def get(self, request: Any) -> Response:
        return Response("secret", headers=dict(request.query_params.items()))


def told(request: HttpRequest, closed: Any) -> HttpResponse:
    return HttpResponse(f"denied {request.user.pk}")


urlpatterns = [
    path("decorator/", cached(adult(view))),
    path("async-class/", cached(type("Gated", (VerifiedMixin, AsyncPage), {}).as_view())),
    path("answered/", cached(kyc_level_required("level_3", on_closed=told)(view))),
    path("api/", cached(Api.as_view())),
    path("identity/", include("django_identity.urls")),
]
every_address = pytest.mark.parametrize("address", ["decorator", "async-class", "answered", "api"])


@pytest.fixture(autouse=True)
def shared_cache() -> Iterator[None]:
    memory = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}}
    with override_settings(CACHES=memory):
        yield


def browser(user: User | None) -> Client:
    made = Client()
    if user is not None:
        made.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
    return made


def adult_user(name: str = "ada") -> User:
    user = make_user(name)
    make_identity(user, subject=name)
    return user


@every_address
def test_nobody_sees_an_adults_page_from_the_cache(address: str) -> None:
    """Neither a stranger, nor the same person after a revocation; nor one what another was told."""
    user = adult_user()
    mine, theirs = browser(user), browser(adult_user("bola"))
    first = mine.get(f"/{address}/")
    assert first.status_code == 200
    assert browser(None).get(f"/{address}/").content != first.content
    assert (theirs.get(f"/{address}/").content == first.content) is (address != "answered")
    LinkedIdentity.objects.update(consent="revoked")
    assert (mine.get(f"/{address}/").status_code == 200) is (address == "answered")


@every_address
def test_every_answer_says_that_it_is_private(address: str) -> None:
    """Open or closed. A page, JSON and HTMX get different answers at one address."""
    for user in (adult_user(), make_user("eve"), None):
        answer = browser(user).get(f"/{address}/")
        assert "private" in answer["Cache-Control"]
        assert "Cookie" in answer["Vary"]
    varies = answer_of(adult(view), AnonymousUser())["Vary"]
    assert {"Cookie", "Accept", "HX-Request"} <= {name.strip() for name in varies.split(",")}
    assert "Authorization" in browser(None).get("/api/")["Vary"]


def test_a_word_of_the_views_own() -> None:
    """``no-store`` is more than private and stays; nothing else lets a cache store the answer."""
    user = adult_user()
    assert "no-store" in answer_of(adult(never_cache(view)), user)["Cache-Control"]
    for said in ("no-store", "public"):
        answer = browser(user).get(f"/api/?Cache-Control={said}")
        assert answer["Cache-Control"] == "private, no-store"
    for said in ("public, max-age=60", "no-cache=x"):
        page = HttpResponse("secret", headers={"Cache-Control": said})
        gated = cached(adult(lambda request, page=page: page))
        assert answer_of(gated, user).content == b"secret"
        assert answer_of(gated, AnonymousUser()).status_code == 302
