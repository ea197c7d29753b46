"""Every switch of the sandbox is met by the app: each sign-in ends well or on a page of its own.

Each value of each switch beside the others' own, and every set of scopes with every way to name
the person.
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

from django_identity.gates import claims_of
from django_identity.lifecycle.standing.standing import standing_of
from django_identity.models import LinkedIdentity
from django_identity.sandbox.switches import ALL
from django_identity.testing.sandbox import RunningSandbox, SandboxPerson
from tests.factories import again
from tests.views.connect.pages import page_of

SCOPES = ("profile:read", "kyc:read", "claims:read")
SCOPE_SETS = [
    chosen for size in (3, 2, 1) for chosen in itertools.combinations(SCOPES, size)
]
Row = dict[str, Any]

VALUES: dict[str, tuple[Any, ...]] = {
    name: each.metadata["values"] for name, each in ALL.items()
}
PLAIN: Row = {name: each.default for name, each in ALL.items()}
# Without these a switch would change nothing.
NEEDED: dict[str, Row] = {
    "id_token_aud": {"token_subject": "id_token", "users_me": False},
    "access_token_aud": {"token_subject": "jwt_access_token", "users_me": False},
}
# Where a site has to say what names the person, because it may be a claim's or a document's.
SAID_BY_THE_SITE: dict[str, Row] = {
    place: {"EVENT_SUBJECT_PATHS": [place]} for place in ("data.subject", "data.id")
}
NAMING = ("token_subject", "users_me")
NAMED: list[Row] = [
    {**PLAIN, **dict(zip(NAMING, values, strict=True))}
    for values in itertools.product(*(VALUES[name] for name in NAMING))
]
ALONE: list[Row] = [
    {**PLAIN, **NEEDED.get(name, {}), name: value}
    for name, values in VALUES.items()
    for value in values
    if name not in NAMING and value != PLAIN[name]
]


@pytest.fixture
def site(
    identity_sandbox: RunningSandbox,
    identity_webhooks: Callable[[], None],
) -> Iterator[RunningSandbox]:
    """The sandbox, which sends its events to the site."""
    yield identity_sandbox
    # An event that came later would be in the rows of another test.
    identity_webhooks()


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("scopes", SCOPE_SETS, ids=" ".join)
def test_every_reading_of_a_sign_in(
    scopes,
    site,
    settings,
    identity_sign_in,
    identity_webhooks,
):
    """A sign-in and an event for each row with these scopes."""
    own = settings.DJANGO_IDENTITY
    for row in NAMED + (ALONE if scopes == SCOPES else []):
        said = SAID_BY_THE_SITE.get(row["event_subject"], {})
        given = {**own, "SCOPES": list(scopes), **said}
        with override_settings(DJANGO_IDENTITY=given):
            cache.clear()
            site.control("POST", "switches", **row)
            person = site.create_person()
            user = _sign_in({**row, "scopes": scopes}, person, identity_sign_in)
            if user is not None and "claims:read" in scopes:
                site.revoke_claim(person, "age_over_18")
                identity_webhooks()
                _is_revoked(row, user)


def _sign_in(
    row: Row,
    person: SandboxPerson,
    sign_in: Callable[..., HttpResponse],
) -> User | None:
    """The user who is signed in then, with the claims and the level that the scopes allow."""
    browser = Client()
    response = sign_in(browser, person)
    if not _is_named(row):
        page_of(response, "subject_unknown")
        assert SESSION_KEY not in browser.session
        return None
    assert response.status_code == 302, row
    user = LinkedIdentity.objects.get(subject=person.user_id).user
    assert browser.session[SESSION_KEY] == str(user.pk)
    said = {
        "kyc_verified": True,
        "age_over_18": True,
        "unique_human": True,
        "country_resident": "NG",
    }
    assert claims_of(user) == (said if "claims:read" in row["scopes"] else {})
    is_verified = standing_of(user).level_shortfall("level_2") is None
    assert is_verified is ("kyc:read" in row["scopes"])
    return user


def _is_named(row: Row) -> bool:
    """Whether the service says who signs in, anywhere that the scopes allow the site to look."""
    if row["token_subject"] != "none":
        return True
    return row["users_me"] and {*row["scopes"]} != {"kyc:read"}


def _is_revoked(row: Row, user: User) -> None:
    """One claim, or all of them where the event does not say which."""
    left = claims_of(again(user))
    assert "age_over_18" not in left, row
    assert (left == {}) is not row["event_details"]
