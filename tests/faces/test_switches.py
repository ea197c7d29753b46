"""Every switch of the sandbox is met by the app: each sign-in ends well or on a page of its own.

The full product would have millions of rows. The rows here contain every pair of values of any two
switches, and every set of scopes with every form of the token answer.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from dataclasses import fields
from enum import StrEnum
from typing import Any

import pytest
from django.contrib.auth import SESSION_KEY
from django.contrib.auth.models import User
from django.core.cache import cache
from django.http import HttpResponse
from django.test import Client, override_settings
from django.urls import reverse

from django_identity import conf
from django_identity.exceptions import ServiceRefusal
from django_identity.gates import claims_of
from django_identity.lifecycle.standing import standing_of
from django_identity.models import LinkedIdentity, WebhookEvent
from django_identity.sandbox.instruments.switches import Switches
from django_identity.service import ServiceClient
from django_identity.testing.sandbox import RunningSandbox, SandboxPerson
from tests.deliveries import SECRET
from tests.faces.connect.pages import browser_of
from tests.faces.connect_sandbox.pages import hand_in, refused
from tests.records import make_user

SCOPES = ("profile:read", "kyc:read", "claims:read")
SCOPE_SETS = [chosen for size in (3, 2, 1) for chosen in itertools.combinations(SCOPES, size)]
#: The values of switches that are neither words nor yes or no.
NUMBERS = {"decoys": (0, 5), "parallel_deliveries": (1, 4), "webhook_timeout": (10, 5)}
PATIENCE = 10.0

Row = dict[str, Any]


def values_of_switches() -> dict[str, tuple[Any, ...]]:
    """The values of each switch. A new one of another kind is a KeyError."""
    values: dict[str, tuple[Any, ...]] = {}
    for each in fields(Switches):
        if isinstance(each.default, StrEnum):
            values[each.name] = tuple(word.value for word in type(each.default))
        elif isinstance(each.default, bool):
            values[each.name] = (True, False)
        else:
            values[each.name] = NUMBERS[each.name]
    return values


def rows() -> list[Row]:
    """Rows that contain every pair of values: each takes what covers the most missing pairs."""
    values = {"scopes": tuple(SCOPE_SETS), **values_of_switches()}
    missing = {
        pair: None
        for one, other in itertools.combinations(values, 2)
        for pair in itertools.product(_each(values, one), _each(values, other))
    }
    made: list[Row] = []
    while missing:
        row: Row = dict(next(iter(missing)))
        for name in values:
            if name not in row:
                row[name] = _best(row, list(_each(values, name)), missing)
        made.append({name: row[name] for name in values})
        for pair in itertools.combinations(made[-1].items(), 2):
            missing.pop(pair, None)
    return made


def _each(values: dict[str, tuple[Any, ...]], name: str) -> list[tuple[str, Any]]:
    return [(name, value) for value in values[name]]


def _best(row: Row, offered: list[tuple[str, Any]], missing: dict[Any, None]) -> Any:
    """The value that makes the most missing pairs with what the row has."""

    def gain(mine: tuple[str, Any]) -> int:
        return sum((mine, held) in missing or (held, mine) in missing for held in row.items())

    return max(offered, key=gain)[1]


ROWS = rows()


def test_the_rows_meet_every_value() -> None:
    """Also of a switch that is new, which the tests below must then say something about."""
    met = {name: {row[name] for row in ROWS} for name in ROWS[0]}
    assert {each.name for each in fields(Switches)} == met.keys() - {"scopes"} == KNOWN
    for name, values in values_of_switches().items():
        assert met[name] == set(values)
    product = {(row["scopes"], row["token_subject"]) for row in ROWS}
    assert len(product) == len(SCOPE_SETS) * 5


#: What each switch changes for the app, and how the rows look at it.
KNOWN = {
    # the sign-in
    "token_subject", "basic_clients", "users_me", "kyc_user_id", "claim_values", "claims_iat",
    "decoys",
    # the events
    "event_details", "event_timestamp", "event_json", "parallel_deliveries", "webhook_timeout",
    # the codes
    "missing_connect_code", "connect_refusals_spend", "connect_nested", "connect_messages",
    "connect_signature",
}  # fmt: skip


@pytest.fixture
def site(
    identity_sandbox: RunningSandbox, identity_application: conf.Application, live_server: Any,
    settings: Any,
) -> Iterator[RunningSandbox]:  # fmt: skip
    """The site behind a socket, to which the sandbox sends its events."""
    client_id = identity_application.client_id
    (registered,) = [
        each
        for each in identity_sandbox.control("GET", "applications")
        if client_id in each["clients"].values()
    ]
    url = live_server.url + reverse("identity:webhook")
    path = f"applications/{registered['app_id']}/webhook"
    identity_sandbox.control("POST", path, url=url, secret=SECRET)
    given = {**settings.DJANGO_IDENTITY["default"], "WEBHOOK_SECRETS": [SECRET], "RATE_LIMIT": None}
    with override_settings(DJANGO_IDENTITY={"default": given}):
        yield identity_sandbox


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("scopes", SCOPE_SETS, ids=" ".join)
def test_every_reading_of_the_service(
    scopes: tuple[str, ...], site: RunningSandbox, settings: Any,
    identity_sign_in: Callable[..., HttpResponse],
) -> None:  # fmt: skip
    """A sign-in, an event and a code for each row with these scopes."""
    given = {**settings.DJANGO_IDENTITY["default"], "SCOPES": list(scopes)}
    with override_settings(DJANGO_IDENTITY={"default": given}):
        for row in ROWS:
            if row["scopes"] == scopes:
                cache.clear()
                switches = {name: value for name, value in row.items() if name != "scopes"}
                site.control("POST", "switches", **switches)
                _sign_in(row, site, identity_sign_in)
                _hand_in_codes(row, site)


def _sign_in(row: Row, site: RunningSandbox, sign_in: Callable[..., HttpResponse]) -> None:
    person, browser = site.create_person(), Client()
    response = sign_in(browser, person)
    if not _is_named(row):
        refused(response, "subject_unknown")
        assert SESSION_KEY not in browser.session
        return
    assert response.status_code == 302, row
    identity = LinkedIdentity.objects.get(subject=person.user_id)
    assert browser.session[SESSION_KEY] == str(identity.user_id)
    _look_at_gates(row, identity)
    _hear_of_a_revocation(row, site, person, identity)


def _is_named(row: Row) -> bool:
    """Whether the service says who signs in, anywhere that the scopes allow the site to look."""
    names_itself = {"profile:read", "claims:read"} | ({"kyc:read"} if row["kyc_user_id"] else set())
    answers = row["users_me"] and not names_itself.isdisjoint(row["scopes"])
    return row["token_subject"] != "none" or answers


def _look_at_gates(row: Row, identity: LinkedIdentity) -> None:
    said = {"kyc_verified": True, "age_over_18": True, "unique_human": True,
            "country_resident": "NG"}  # fmt: skip
    assert claims_of(identity.user) == (said if "claims:read" in row["scopes"] else {})
    assert standing_of(identity.user).has_kyc_level("level_2") is ("kyc:read" in row["scopes"])


def _hear_of_a_revocation(
    row: Row, site: RunningSandbox, person: SandboxPerson, identity: LinkedIdentity
) -> None:
    """Of one claim, or of all of them where the event does not say which."""
    site.control("POST", f"users/{person.user_id}/claims/age_over_18/revoke")
    heard = WebhookEvent.objects.filter(subject=person.user_id, event_type="claim.revoked")
    _until(heard.exists)
    left = claims_of(identity.user)
    assert "age_over_18" not in left
    if "claims:read" in row["scopes"]:
        assert (left == {}) is not row["event_details"]


def _hand_in_codes(row: Row, site: RunningSandbox) -> None:
    """One that links; one of another environment; and a request without a code."""
    user = make_user(f"member-{User.objects.count()}")
    live = site.create_person(environment="live")
    refused(hand_in(browser_of(user), _code_of(live, site)), "environment_mismatch")
    response = hand_in(browser_of(user), _code_of(site.create_person(), site))
    assert response.status_code == 302, row
    assert LinkedIdentity.objects.get(user=user).kyc_status == "verified"
    with pytest.raises(ServiceRefusal) as raised:
        ServiceClient(conf.application()).redeem_connect_code("", ["profile:basic"])
    expected = {"required": "connect_code_required", "invalid": "invalid_connect_code"}
    assert raised.value.code == expected[row["missing_connect_code"]]


def _code_of(person: SandboxPerson, site: RunningSandbox) -> str:
    return str(site.control("POST", "connect-codes", user_id=person.user_id)["code"])


def _until(happened: Callable[[], bool]) -> None:
    gives_up = time.monotonic() + PATIENCE
    while not happened():
        assert time.monotonic() < gives_up, "no event came"
        time.sleep(0.01)
