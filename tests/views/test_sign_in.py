"""Sign-in as it goes well; with few scopes that much is read, and that much held."""

import base64
import hashlib
import itertools
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from django_identity import database, signals
from django_identity.gates import claims_of
from django_identity.lifecycle.standing.standing import standing_of
from django_identity.models import (
    AuthorizationRequest,
    LinkedIdentity,
    StoredClaim,
    TokenGrant,
)
from tests.example_counts import spread
from tests.fake_service import FakeService
from tests.lifecycle.grants import announced
from tests.sign_in import begin, come_back, sign_in, signed_in_as

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_new_person_gets_an_account(client, service):
    response = sign_in(client, "/adults/")
    assert response.status_code == 302
    assert response["Location"] == "/adults/"
    user = User.objects.get()
    assert user.email == "ada@example.org"
    assert user.first_name == "Ada"
    assert not user.has_usable_password()
    assert signed_in_as(client) == user.username
    assert claims_of(user) == {"age_over_18": True}
    assert standing_of(user).level_shortfall("level_2") is None
    assert service.calls("token") == 1
    browser = Client()
    sign_in(browser)
    assert signed_in_as(browser) == user.username
    assert User.objects.count() == LinkedIdentity.objects.count() == 1


def test_nothing_secret_is_stored_in_the_clear(client, service):
    kept: list[str] = []
    requests = AuthorizationRequest.objects.values_list("code_verifier", flat=True)
    service.meanwhile["token"] = lambda: kept.extend(requests)
    sign_in(client)
    assert kept == [""]
    grant = TokenGrant.objects.get()
    assert "secret" not in grant.access_token + grant.refresh_token
    rows = (LinkedIdentity.objects.values().get(), StoredClaim.objects.values().get())
    assert not any("~" in str(row) for row in rows)
    assert AuthorizationRequest.objects.get().code_verifier == ""


def test_a_callback_that_is_registered_without_its_last_slash(
    client,
    service,
    settings,
):
    """It is answered itself, so that the code stands in one address only."""
    registered = "http://testserver/identity/callback"
    settings.DJANGO_IDENTITY = service.settings(REDIRECT_URI=registered)
    state = begin(client)
    response = client.get(registered, {"code": "a-code", "state": state})
    assert response.status_code == 302
    assert response["Location"] == "/"
    assert signed_in_as(client)


def test_the_exchange_proves_who_began(client, service):
    """The token call carries the verifier of the challenge that went out (RFC 7636 §4.6)."""
    posted = {"scope": "all", "redirect_uri": "https://evil.example", "state": "x"}
    response = client.post(reverse("identity:login") + "?client_id=evil", posted)
    query = parse_qs(urlsplit(response["Location"]).query)
    begun = {name: value for name, (value,) in query.items()}
    # No protocol parameter comes from the request.
    assert begun["client_id"] == "test-client"
    assert begun["redirect_uri"] == "http://testserver/identity/callback/"
    assert begun["scope"] == "profile:read kyc:read claims:read"

    come_back(client, begun["state"])
    (raw,) = [raw for name, _, raw in service.requests if name == "token"]
    form = parse_qs(raw.decode().split("\r\n\r\n")[1])
    sent = {name: value for name, (value,) in form.items()}
    digest = hashlib.sha256(sent.pop("code_verifier").encode()).digest()
    challenge = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
    assert challenge == begun["code_challenge"]
    assert sent["code"] == "a-code"
    assert sent["redirect_uri"] == begun["redirect_uri"]


def test_nothing_that_goes_out_can_be_guessed(service):
    """State, verifier and the browser's key are made anew, each of at least 160 random bits."""
    made: dict[str, set[str]] = {"state": set(), "code_challenge": set(), "key": set()}
    for _ in range(20):
        browser = Client()
        # A cookie that somebody else set, and may know or guess, begins no sign-in.
        browser.cookies["identity_browser"] = "guess"
        location = browser.post(reverse("identity:login"))["Location"]
        given = parse_qs(urlsplit(location).query)
        given["key"] = [browser.cookies["identity_browser"].value]
        for name, values in made.items():
            values.add(given[name][0])
    for values in made.values():
        # 160 bits are 27 characters; none of the first 27 places is always the same.
        assert len(values) == 20
        assert all(len({*place}) > 1 for place in [*zip(*values, strict=True)][:27])


def test_a_session_planted_beforehand_is_not_signed_in(client, service):
    """Signing in changes the session's key: whoever knew the old one has nothing."""
    session = client.session
    session["basket"] = "kept"
    session.save()
    client.cookies["sessionid"] = session.session_key
    sign_in(client)
    assert client.cookies["sessionid"].value != session.session_key
    assert client.session["basket"] == "kept"
    eve = Client()
    eve.cookies["sessionid"] = session.session_key
    assert signed_in_as(client)
    assert signed_in_as(eve) == ""


def test_only_a_press_begins(client, service):
    for method in ("GET", "HEAD"):
        page = client.generic(method, reverse("identity:login") + "?next=/adults/")
        assert page.status_code == 200
        assert page.cookies.get("identity_browser") is None
    foreign = Client(enforce_csrf_checks=True)
    assert foreign.post(reverse("identity:login")).status_code == 403
    assert not AuthorizationRequest.objects.exists()


@pytest.mark.parametrize("is_secure", [False, True])
def test_the_browser_has_a_cookie_of_its_own(client, service, is_secure):
    cookies = client.post(reverse("identity:login"), secure=is_secure).cookies
    (cookie,) = cookies.values()
    assert cookie.key == f"{'__Host-' * is_secure}identity_browser"
    assert cookie["httponly"] is True
    assert cookie["samesite"] == "Lax"
    assert cookie["max-age"] == 86400
    assert bool(cookie["secure"]) == is_secure
    assert cookie["path"] == "/"
    assert cookie["domain"] == ""


def test_tabs_each_keep_their_own_next(client, service):
    states = [begin(client, f"/page-{i}/") for i in range(4)]
    for _ in range(2):
        for i, state in reversed(list(enumerate(states))):
            assert come_back(client, state)["Location"] == f"/page-{i}/"
    assert service.calls("token") == 4


@pytest.mark.parametrize(
    "way",
    ["user_id", "sub", "id_token", "access_token", "none", "null"],
)
def test_the_subject_is_learnt_in_several_ways(client, service, way):
    token = service.identity_token
    service.token = {
        "user_id": {"user_id": "subject-1"},
        "sub": {"sub": "subject-1"},
        "id_token": {"id_token": token("subject-1")},
        "access_token": {"access_token": token("subject-1", head={"typ": "at+jwt"})},
        "none": {},
        "null": {"user_id": None, "sub": None, "id_token": None, "scope": None},
    }[way]
    sign_in(client)
    assert LinkedIdentity.objects.get().subject == "subject-1"
    assert service.calls("me") == (1 if way in ("none", "null") else 0)


CHANGES: list[dict[str, Any]] = [
    {"iss": "https://evil.example"},
    {"aud": "another-client"},
    {"aud": ["test-client", "another-client"]},
    {"exp": 1},
    {"exp": None},
    {"iat": 2**40},
    {"sub": 7},
    {"sub": ".."},
    {"head": {"alg": "none"}},
    {"head": {"alg": "HS256"}},
    {"head": {"kid": "another"}},
    {"head": {"kid": ["k1"]}},
    {"head": {"typ": "dc+sd-jwt"}},
    {"head": {"typ": {}}},
    {"head": {"crit": ["x"], "x": 1}},
]


# One in two of an odd number: each change in one of the two places.
@pytest.mark.parametrize(
    ("where", "changes"),
    spread(itertools.product(("id_token", "access_token"), CHANGES), every=2),
    ids=str,
)
def test_a_token_that_cannot_be_verified_names_nobody(client, service, where, changes):
    changes = {"sub": "somebody-else", **changes}
    subject = changes.pop("sub")
    service.token = {where: service.identity_token(subject, **changes)}
    sign_in(client)
    assert LinkedIdentity.objects.get().subject == "subject-1"
    assert service.calls("me") == 1


@pytest.mark.parametrize(
    ("members", "lives"),
    [
        ({"expires_in": None}, 3600),
        ({"expires_in": "1800"}, 1800),
        ({"expires_in": 1800.5}, 1800),
        ({"expires_in": "soon"}, 3600),
        ({"expires_in": True}, 3600),
        ({"expires_in": [1]}, 3600),
        ({"expires_in": 0}, 0),
        ({"expires_in": -5}, 0),
        ({"expires_in": 10**30}, 86_400),
        ({"token_type": None}, 3600),
        ({"token_type": "bearer"}, 3600),
        ({"error": None, "scope": None, "refresh_token": None}, 3600),
    ],
    ids=str,
)
def test_an_odd_token_answer_is_a_good_one(client, service, members, lives):
    service.token = members
    assert sign_in(client).status_code == 302
    left = (TokenGrant.objects.get().access_expires_at - timezone.now()).total_seconds()
    # A tenth of a token's life, a minute at most, is left unused.
    assert lives - 90 <= left <= max(lives, 1)


def test_null_is_absent_in_every_answer(client, service):
    members = ("email", "last_name", "country", "kyc_level", "photo_url")
    service.profile = dict.fromkeys(members)
    service.kyc = dict.fromkeys(("provider", "verified_at"))
    good = service.good("claims")
    good["data"]["credential_format"] = None
    for claim in good["data"]["claims"]:
        claim |= {"revoked": None, "proof_hash": None, "expires_at": None}
    service.answers["claims"] = {"success": True, "error": None, **good}
    assert sign_in(client).status_code == 302
    assert claims_of(User.objects.get()) == {"age_over_18": True}


@pytest.mark.parametrize("same_site", ["Strict", "STRICT", "Lax", None, False])
def test_a_strict_session_cookie_gets_its_hop(client, service, settings, same_site):
    """With SameSite=Strict the callback first opens itself again from our own page."""
    settings.SESSION_COOKIE_SAMESITE = same_site
    state = begin(client)
    query = {"code": "a-code", "state": state}
    answer = client.get(reverse("identity:callback", query=query))
    if str(same_site).lower() != "strict":
        assert answer.status_code == 302
        return

    assert answer.status_code == 200
    assert b'http-equiv="refresh"' in answer.content
    assert service.requests == []
    assert come_back(client, state, same_site="1").status_code == 302
    # As the testing kit takes the hop.
    assert sign_in(Client()).status_code == 302


def test_every_page_has_its_manners(client, service, settings):
    closed = "django.contrib.auth.middleware.LoginRequiredMiddleware"
    settings.MIDDLEWARE = [*settings.MIDDLEWARE, closed]
    for page in ("login", "account", "disconnect", "callback", "connect"):
        response = client.get(reverse(f"identity:{page}"))
        assert response["Cache-Control"] == "private, no-store"
        assert response["Referrer-Policy"] == "no-referrer"
        assert response["X-Frame-Options"] == "DENY"
    # A page tells its own site more: else browsers send the forms of its frame without an origin.
    page = client.get(reverse("identity:login"))
    assert b'<meta name="referrer" content="same-origin">' in page.content
    # The address of a callback has the code.
    page = client.get(reverse("identity:callback"), {"code": "c", "state": "s" * 20})
    assert b'<meta name="referrer" content="strict-origin">' in page.content


@pytest.mark.parametrize(
    ("granted", "calls"),
    [
        ("profile:read", ["token", "me"]),
        ("claims:read", ["token", "claims", "jwks"]),
        ("kyc:read", ["token", "kyc"]),
        ("kyc:read claims:read", ["token", "claims", "kyc", "jwks"]),
    ],
)
def test_nothing_is_read_that_was_not_granted(client, service, granted, calls):
    service.token, service.kyc = {"scope": granted}, {"user_id": "subject-1"}
    assert sign_in(client).status_code == 302
    assert [name for name, _, _ in service.requests] == calls
    assert LinkedIdentity.objects.get().subject == "subject-1"


def sign_in_with(service: FakeService, client: Client, scopes: str) -> LinkedIdentity:
    service.token = {"scope": scopes}
    assert sign_in(client).status_code == 302
    return LinkedIdentity.objects.get()


def test_without_kyc_read_the_level_goes(client, service):
    sign_in_with(service, client, "profile:read kyc:read claims:read")
    identity = sign_in_with(service, client, "profile:read claims:read")
    kyc = (identity.kyc_level, identity.kyc_status, identity.kyc_provider)
    assert kyc == ("", "", "")
    assert identity.kyc_verified_at is None
    assert identity.kyc_said_at is None
    assert standing_of(identity.user).level_shortfall("level_1")
    assert claims_of(identity.user) == {"age_over_18": True}
    identity = sign_in_with(service, client, "profile:read kyc:read")
    assert standing_of(identity.user).level_shortfall("level_2") is None


def test_without_claims_read_proofs_go_once(client, service):
    sign_in_with(service, client, "profile:read kyc:read claims:read")
    with announced(signals.claims_changed) as heard:
        for _ in range(2):
            identity = sign_in_with(service, client, "profile:read kyc:read")
    assert heard == [identity]
    assert claims_of(identity.user) == {}
    assert set(StoredClaim.objects.values_list("value", "valid_until")) == {
        (None, None),
    }
    assert identity.credential_expires_at is None
    assert standing_of(identity.user).level_shortfall("level_2") is None
    identity = sign_in_with(service, client, "claims:read")
    assert claims_of(identity.user) == {"age_over_18": True}


def test_claims_of_a_sign_in_meanwhile_go_too(service, monkeypatch):
    """Another tab brings claims after the row was read: the sign-in without them sees that."""
    # One connection plays both tabs, so the second one is inside the first one's transaction.
    monkeypatch.setattr(database, "require_no_transaction", lambda _message: None)
    late = Client()
    service.token = {"scope": "profile:read kyc:read"}
    sign_in(Client())
    state = begin(late)
    others: list[int] = []

    def meanwhile(execute: Any, sql: str, *given: Any) -> Any:
        done = execute(sql, *given)
        if "linkedidentity" in sql and not others:
            others.append(1)
            service.token = {}
            others.append(sign_in(Client()).status_code)
        return done

    with connection.execute_wrapper(meanwhile):
        assert come_back(late, state).status_code == 302
    assert others == [1, 302]
    claim = StoredClaim.objects.get()
    assert claim.value is None
    assert claim.valid_until is None
