"""Each member that ``docs/openapi.yaml`` names, missing, doubled, of another type, 1 MB long."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from django.test import Client

from django_identity.models import AuthorizationRequest, ConnectRedemption, LinkedIdentity
from tests.records import make_user

pytestmark = pytest.mark.django_db

DOCUMENT = yaml.safe_load(
    (Path(__file__).resolve().parents[2] / "docs" / "openapi.yaml").read_text("utf-8")
)
PREFIX = "/identity/api/"
LOCAL = "django.contrib.auth.backends.ModelBackend"
MARK = "content-of-a-person"
OPTIONAL = {("login", "next")}
# What each endpoint would take, or at least look at.
USABLE = {
    "login": {"next": f"/{MARK}"},
    "callback": {"state": "s" * 43, "code": MARK},
    "connect": {"connect_code": "CNX-AB12-CD34"},
    "disconnect": {},
}
OTHER_TYPES = {
    "number": 7, "fraction": 1.5, "null": None, "bool": True, "list": [MARK], "object": {MARK: MARK}
}  # fmt: skip


def members() -> Iterator[tuple[str, str]]:
    """Each endpoint with each member of its request."""
    for path, operations in DOCUMENT["paths"].items():
        request = operations.get("post", {}).get("requestBody")
        if request is None or "{alias}" in path:
            continue
        name = request["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2]
        for member in DOCUMENT["components"]["schemas"][name]["properties"]:
            yield path.removeprefix(PREFIX), member


def bodies() -> Iterator[Any]:
    for endpoint, member in members():
        usable = USABLE[endpoint]
        if (endpoint, member) not in OPTIONAL and member in usable:
            lacking = {name: value for name, value in usable.items() if name != member}
            yield pytest.param(endpoint, json.dumps(lacking), id=f"{endpoint}: {member} missing")
        for kind, value in OTHER_TYPES.items():
            changed = json.dumps({**usable, member: value})
            yield pytest.param(endpoint, changed, id=f"{endpoint}: {member} is {kind}")
        long = json.dumps({**usable, member: MARK * 55_000})
        yield pytest.param(endpoint, long, id=f"{endpoint}: {member} of 1 MB")
        twice = json.dumps({**usable, member: MARK})[:-1] + f', "{member}": "{MARK}"}}'
        yield pytest.param(endpoint, twice, id=f"{endpoint}: {member} twice")


def test_every_member_is_tried() -> None:
    """The document names them; a new endpoint needs a usable body above."""
    assert {endpoint for endpoint, _ in members()} == {"login", "callback", "connect"}


@pytest.mark.parametrize("is_signed_in", [True, False], ids=["somebody", "nobody"])
@pytest.mark.parametrize(("endpoint", "body"), list(bodies()))
def test_a_bad_member_is_a_problem(
    endpoint: str, body: str, is_signed_in: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """A 4xx of the document's form, nothing stored, one line of each log without the content."""
    caplog.set_level(0)
    client = Client()
    if is_signed_in:
        client.force_login(make_user(), backend=LOCAL)
    caplog.clear()
    answer: Any = client.post(f"{PREFIX}{endpoint}", body, content_type="application/json")
    assert 400 <= answer.status_code < 500
    assert answer["Content-Type"] == "application/problem+json"
    named = DOCUMENT["paths"][f"{PREFIX}{endpoint}"]["post"]["responses"]
    assert str(answer.status_code) in named
    problem = {"$ref": "#/components/schemas/Problem", "components": DOCUMENT["components"]}
    jsonschema.validate(answer.json(), problem)
    for model in (AuthorizationRequest, ConnectRedemption, LinkedIdentity):
        assert not model.objects.exists()
    assert MARK not in caplog.text + answer.content.decode()
    for log in ("django.request", "django_identity"):
        assert sum(record.name.startswith(log) for record in caplog.records) <= 1
    assert caplog.records
