"""Every switch of the sandbox is met by the app: each sign-in ends well or on a page of its own.

Each value of each switch beside the others' own, and every set of scopes with every form of the
token answer.
"""

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.contrib.auth import SESSION_KEY
from django.contrib.auth.models import User
from django.core.cache import cache
from django.http import HttpResponse
from django.test import Client, override_settings

from django_identity import conf
from django_identity.exceptions import ServiceRefusal
from django_identity.gates import claims_of
from django_identity.lifecycle.standing import standing_of
from django_identity.models import LinkedIdentity, WebhookEvent
from django_identity.sandbox.switches import ALL
from django_identity.service import ServiceClient
from django_identity.testing.sandbox import RunningSandbox, SandboxPerson
from tests.factories import make_user
from tests.sandbox.receiver import until
from tests.views.connect.pages import browser_of, hand_in, page_of

SCOPES = ("profile:read", "kyc:read", "claims:read")
SCOPE_SETS = [chosen for size in (3, 2, 1) for chosen in itertools.combinations(SCOPES, size)]
Row = dict[str, Any]


VALUES: dict[str, tuple[Any, ...]] = {name: each.metadata["values"] for name, each in ALL.items()}
PLAIN: Row = {"scopes": SCOPES, **{name: each.default for name, each in ALL.items()}}


def rows() -> list[Row]:
    alone = [{name: value} for name, values in VALUES.items() for value in values]
    tokens = itertools.product(SCOPE_SETS, VALUES["token_subject"], VALUES["users_me"])
    named = [{"scopes": one, "token_subject": two, "users_me": three} for one, two, three in tokens]
    return [{**PLAIN, **row} for row in (*alone, *named)]


ROWS = rows()


@pytest.fixture
def site(
    identity_sandbox: RunningSandbox, identity_webhooks: Callable[[], None]
) -> Iterator[RunningSandbox]:
    """The sandbox, which sends its events to the site."""
    yield identity_sandbox
    # An event that came later would be in the rows of another test.
    identity_webhooks()


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
        page_of(response, "subject_unknown")
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
    assert (standing_of(identity.user).level_shortfall("level_2") is None) is (
        "kyc:read" in row["scopes"]
    )


def _hear_of_a_revocation(
    row: Row, site: RunningSandbox, person: SandboxPerson, identity: LinkedIdentity
) -> None:
    """Of one claim, or of all of them where the event does not say which."""
    site.control("POST", f"users/{person.user_id}/claims/age_over_18/revoke")
    if "claims:read" not in row["scopes"] and not row["all_events"]:
        return  # the service tells those whose scopes cover it
    heard = WebhookEvent.objects.filter(subject=person.user_id, event_type="claim.revoked")
    until(heard.exists)
    left = claims_of(User.objects.get(pk=identity.user_id))
    assert "age_over_18" not in left
    if "claims:read" in row["scopes"]:
        assert (left == {}) is not row["event_details"]


def _hand_in_codes(row: Row, site: RunningSandbox) -> None:
    """One that links; one of another environment; and a request without a code."""
    user = make_user(f"member-{User.objects.count()}")
    live = site.create_person(environment="live")
    page_of(hand_in(browser_of(user), _code_of(live, site)), "environment_mismatch")
    response = hand_in(browser_of(user), _code_of(site.create_person(), site))
    assert response.status_code == 302, row
    assert LinkedIdentity.objects.get(user=user).kyc_status == "verified"
    with pytest.raises(ServiceRefusal) as raised:
        ServiceClient(conf.application()).redeem_connect_code("", ["profile:basic"])
    expected = {"required": "connect_code_required", "invalid": "invalid_connect_code"}
    assert raised.value.code == expected[row["missing_connect_code"]]


def _code_of(person: SandboxPerson, site: RunningSandbox) -> str:
    return str(site.control("POST", "connect-codes", user_id=person.user_id)["code"])
