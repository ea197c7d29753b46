"""Bodies that the API must not take: too deep, too large, no JSON, or a foreign page's form."""

import base64
import json
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from rest_framework.authentication import BaseAuthentication
from rest_framework.request import Request
from rest_framework.test import APIRequestFactory

from django_identity.api.views import DisconnectView
from django_identity.models import LinkedIdentity
from tests.factories import make_identity, make_user

pytestmark = pytest.mark.django_db(transaction=True)

UNSAFE = ("login", "callback", "connect", "disconnect")
JSON = "application/json"
# What a form or a fetch in "no-cors" can send; and JSON, which needs the token as any other body.
FOREIGN = ("application/x-www-form-urlencoded", "multipart/form-data", "text/plain", "", JSON)
BODIES = {
    "200,000 brackets": b"[" * 200_000,
    "200,000 objects": b'{"a":' * 200_000 + b"1" + b"}" * 200_000,
    "deep": b'{"next": ' + b"[" * 40 + b"]" * 40 + b"}",
    "a million digits": b'{"next": 1' + b"0" * 1_000_000 + b"}",
    "an endless number": b'{"next": 1e999}',
    "not a number": b'{"next": NaN}',
    "a name twice": b'{"next": "/a", "next": "/b"}',
    "UTF-16": '{"next": "/"}'.encode("utf-16"),
    "no UTF-8": b'{"next": "\xff"}',
    "half a body": b'{"next": "/',
    "a list": b"[]",
    "a text": b'"x"',
    "a megabyte": json.dumps({"next": "/" * 1_000_000}).encode(),
}


class TokenAuthentication(BaseAuthentication):
    """A site's own: a token in the header is enough."""

    def authenticate(self, request: Request) -> tuple[User, None] | None:
        is_known = request.headers.get("Authorization") == "Bearer of-ada"
        return (User.objects.get(username="ada"), None) if is_known else None


@pytest.fixture
def ada() -> User:
    user = make_user()
    make_identity(user)
    return user


def basic() -> dict[str, str]:
    """What a browser that was once asked for a password adds to each request by itself."""
    return {"authorization": "Basic " + base64.b64encode(b"ada:a password").decode()}


def browser() -> Client:
    return Client(enforce_csrf_checks=True, raise_request_exception=False)


@pytest.mark.parametrize(
    ("name", "body"),
    [*(("login", body) for body in BODIES.values()), *((each, BODIES["deep"]) for each in UNSAFE)],
)
def test_a_body_out_of_bounds_is_refused(ada: User, name: str, body: bytes) -> None:
    """A problem as JSON, and nothing happens."""
    client = Client(raise_request_exception=False)
    address = reverse(f"identity_api:{name}")
    response = client.post(address, body, content_type=JSON, headers=basic())
    if name == "disconnect":  # it has no body, so it reads none
        assert response.status_code == 200
        return
    assert (response.status_code, response.json()["code"]) == (400, "parse_error")
    assert LinkedIdentity.objects.count() == 1


@pytest.mark.parametrize(
    ("name", "content_type"),
    [*(("disconnect", kind) for kind in FOREIGN), *((each, FOREIGN[0]) for each in UNSAFE)],
)
def test_a_foreign_form_changes_nothing(ada: User, name: str, content_type: str) -> None:
    """Credentials that a browser adds by itself do not make a foreign form the person's own."""
    headers = {**basic(), "origin": "https://evil.example"}
    address = reverse(f"identity_api:{name}")
    response = browser().post(address, b"", content_type=content_type, headers=headers)
    assert (response.status_code, response.json()["code"]) == (403, "permission_denied")
    assert LinkedIdentity.objects.count() == 1


def test_a_token_comes_from_no_foreign_form(ada: User) -> None:
    """A token in the header is put there by a program, so the request is its own."""
    view: Any = DisconnectView.as_view(authentication_classes=[TokenAuthentication])
    request = APIRequestFactory(enforce_csrf_checks=True).post(
        "/", headers={"authorization": "Bearer of-ada"}
    )
    request.session = {}
    assert view(request).data["disconnected"] is True


def test_a_body_in_bounds_is_read(ada: User) -> None:
    """White space and escapes are no reason to refuse."""
    body = b' {"next" : "\\u002fadults/"} '
    response = Client().post(
        reverse("identity_api:login"), body, content_type=f"{JSON}; charset=utf-8", headers=basic()
    )
    assert list(response.json()) == ["authorization_url"]


MEMBERS: dict[str, dict[str, object]] = {
    "login": {"next": "/"},
    "callback": {"state": "s" * 43, "code": "a-code"},
    "connect": {"connect_code": "CNX-AB12-CD34"},
}


@pytest.mark.parametrize("name", MEMBERS)
def test_members_are_texts_and_known(ada: User, name: str) -> None:
    """Each is refused as null, a list or an object, and so is one that the endpoint lacks."""
    client = Client()
    client.force_login(ada, backend="django.contrib.auth.backends.ModelBackend")
    usable = MEMBERS[name]
    wrong = [{**usable, member: value} for member in usable for value in (None, ["a"], {"a": "a"})]
    for body, code in [*((each, {"null", "invalid"}) for each in wrong),
                       ({**usable, "role": "all"}, {"unknown_member"})]:  # fmt: skip
        answer = client.post(reverse(f"identity_api:{name}"), body, content_type=JSON)
        assert answer.status_code == 400
        assert answer.json()["code"] in code
