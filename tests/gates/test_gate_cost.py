"""What gates cost a whole request: two queries, however many there are; none for nobody."""

from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User
from django.db import connection
from django.http import HttpRequest, HttpResponse
from django.test import AsyncClient, Client
from django.test.utils import CaptureQueriesContext
from django.urls import include, path

from django_identity.gates import claims_of
from tests.factories import make_claim, make_identity, make_user
from tests.gates.gated import Api, Stacked, StackedAsync, adult, local, verified

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.urls(__name__)]


@adult
@verified
@local
def pages(request: HttpRequest) -> HttpResponse:
    return HttpResponse(sorted(claims_of(request.user)))


@adult
@verified
@local
async def async_pages(request: HttpRequest) -> HttpResponse:
    return HttpResponse(sorted(claims_of(await request.auser())))


urlpatterns = [
    path("pages/", pages),
    path("async-pages/", async_pages),
    path("classes/", Stacked.as_view()),
    path("async-classes/", StackedAsync.as_view()),
    path("answers/", Api.as_view()),
    path("identity/", include("django_identity.urls")),
]


def by_wsgi(user: User | None) -> Any:
    return signed_in(Client(), user).get


def by_asgi(user: User | None) -> Any:
    return async_to_sync(signed_in(AsyncClient(), user).get)


def signed_in(browser: Any, user: User | None) -> Any:
    if user is not None:
        browser.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
    return browser


pytestmark += [
    pytest.mark.parametrize("server", [by_wsgi, by_asgi]),
    pytest.mark.parametrize(
        "address", ["/pages/", "/async-pages/", "/classes/", "/async-classes/", "/answers/"]
    ),
]


def queries_of(get: Any, address: str, status: int) -> list[str]:
    with CaptureQueriesContext(connection) as captured:
        assert get(address).status_code == status
    return [query["sql"] for query in captured]


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


def test_an_anonymous_user_costs_no_query(server: Any, address: str) -> None:
    """Nothing is held on nobody, so nothing is looked up."""
    assert queries_of(server(None), address, 403 if address == "/answers/" else 302) == []
