"""What gates cost a whole request: two queries, however many there are; none for nobody."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from asgiref.testing import ApplicationCommunicator
from django.contrib.auth.models import User
from django.core.handlers.asgi import ASGIHandler
from django.db import connection, connections
from django.http import HttpRequest, HttpResponse
from django.test import AsyncClient, Client
from django.test.utils import CaptureQueriesContext
from django.urls import include, path
from django.views.generic import View
from rest_framework.response import Response
from rest_framework.views import APIView

from django_identity.api.permissions import HasClaim, HasKycLevel
from django_identity.gates import (
    ClaimRequiredMixin,
    KycLevelRequiredMixin,
    claim_required,
    claims_of,
    kyc_level_required,
)
from django_identity.models import LinkedIdentity
from tests.factories import make_claim, make_identity, make_user

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.urls(__name__)]


@claim_required("age_over_18")
@kyc_level_required("level_2")
@claim_required("country_resident=NG")
def pages(request: HttpRequest) -> HttpResponse:
    assert len(claims_of(request.user)) == 2
    return HttpResponse("in")


@claim_required("age_over_18")
@kyc_level_required("level_2")
@claim_required("country_resident=NG")
async def async_pages(request: HttpRequest) -> HttpResponse:
    return HttpResponse(sorted(claims_of(await request.auser())))


class Classes(ClaimRequiredMixin, KycLevelRequiredMixin, View):
    required_claims = ("age_over_18",)
    required_kyc_level = "level_2"

    @staticmethod
    def get(request: HttpRequest) -> HttpResponse:
        return HttpResponse(sorted(claims_of(request.user)))


class AsyncClasses(Classes):
    @staticmethod
    async def get(request: HttpRequest) -> HttpResponse:
        return HttpResponse(sorted(claims_of(await request.auser())))


class Answers(APIView):
    permission_classes = [HasClaim("age_over_18") & HasKycLevel("level_2"), HasClaim("age_over_18")]

    def get(self, request: HttpRequest) -> Response:
        return Response(sorted(claims_of(request.user)))


def counted(request: HttpRequest) -> HttpResponse:
    """How many queries it takes to ask three times."""
    assert request.user.is_authenticated
    with CaptureQueriesContext(connection) as captured:
        claims = [claims_of(request.user) for _ in range(3)]
    connections.close_all()
    return HttpResponse(len(captured) if all(claims) else "0 claims")


urlpatterns = [
    path("counted/", counted),
    path("pages/", pages),
    path("async-pages/", async_pages),
    path("classes/", Classes.as_view()),
    path("async-classes/", AsyncClasses.as_view()),
    path("answers/", Answers.as_view()),
    path("identity/", include("django_identity.urls")),
]

Get = Callable[[str], HttpResponse]


def by_wsgi(user: User | None) -> Get:
    return signed_in(Client(), user).get


def by_asgi(user: User | None) -> Get:
    return async_to_sync(signed_in(AsyncClient(), user).get)


def signed_in(browser: Any, user: User | None) -> Any:
    if user is not None:
        browser.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
    return browser


every_server = pytest.mark.parametrize("server", [by_wsgi, by_asgi])
every_page = pytest.mark.parametrize(
    "address", ["/pages/", "/async-pages/", "/classes/", "/async-classes/", "/answers/"]
)


def queries_of(get: Get, address: str, status: int) -> list[str]:
    with CaptureQueriesContext(connection) as captured:
        assert get(address).status_code == status
    return [query["sql"] for query in captured]


@every_server
@every_page
def test_two_queries_a_request_however_many_gates(server: Any, address: str) -> None:
    """Beside the session's and the user's; Django reads these apart for ``request.auser``."""
    user = make_user()
    identity = make_identity(user)
    make_claim(identity)
    make_claim(identity, "country_resident", "NG")
    get = server(user)
    for _ in range(2):
        queries = queries_of(get, address, 200)
        assert len([sql for sql in queries if "linkedidentity" in sql]) == 1
        assert len(queries) == (5 if "async" in address else 4)


def under_asgi(user: User, address: str) -> str:
    """What Django's own handler answers, in the threads that it keeps for a request."""
    key = signed_in(Client(), user).cookies["sessionid"].value
    scope = {
        "type": "http", "method": "GET", "path": address, "query_string": b"",
        "headers": [(b"host", b"testserver"), (b"cookie", f"sessionid={key}".encode())],
    }  # fmt: skip

    async def answers() -> list[str]:
        called = [ApplicationCommunicator(ASGIHandler(), dict(scope)) for _ in range(2)]
        for each in called:
            await each.send_input({"type": "http.request", "body": b""})
        said = []
        for each in called:
            assert (await each.receive_output(60))["status"] == 200
            said.append((await each.receive_output(60))["body"].decode())
            await each.wait(60)
        return said

    first, second = asyncio.run(answers())
    assert first == second
    return first


def test_requests_at_once_under_asgi_ask_once_each() -> None:
    """Each has a memory of its own, which a later request does not find."""
    user = make_user()
    make_claim(make_identity(user))
    assert under_asgi(user, "/counted/") == "2"
    LinkedIdentity.objects.all().delete()
    assert under_asgi(user, "/counted/") == "0 claims"


@every_server
@every_page
def test_an_anonymous_user_costs_no_query(server: Any, address: str) -> None:
    """Nothing is held on nobody, so nothing is looked up."""
    assert queries_of(server(None), address, 403 if address == "/answers/" else 302) == []
