"""The account page and the file with everything held."""

import json
import re
from datetime import datetime, timedelta

import pytest
from django.contrib.auth.models import User
from django.contrib.sessions.backends.db import SessionStore
from django.db import OperationalError
from django.test import Client, override_settings
from django.urls import reverse
from django.utils import timezone

from django_identity.lifecycle.leaving import dossier
from django_identity.lifecycle.leaving.dossier import PLACES
from django_identity.lifecycle.operators import interventions
from django_identity.models import (
    AuthorizationRequest,
    ConnectRedemption,
    Consent,
    ErasureReceipt,
    LinkedIdentity,
    LinkedVia,
    Purpose,
    SubjectLock,
    TokenGrant,
)
from django_identity.policy import names
from django_identity.texts.labels import table_name
from tests.factories import (
    make_claim,
    make_event,
    make_grant,
    make_identity,
    make_identity_by_code,
    make_user,
)
from tests.views.connect.pages import LOCAL, buttons

pytestmark = pytest.mark.django_db

SECRET = "must-never-be-shown"
# What every connected person can do at the end of the page.
REST = [
    "Disconnect your identity service",
    "Erase my data",
    "Download my data",
    "Sign out",
    "Sign out everywhere",
]


@pytest.fixture
def ada(client: Client) -> User:
    user = make_user(email="ada@example.org", first_name="Ada")
    client.force_login(user, backend=LOCAL)
    return user


def account(client: Client) -> str:
    response = client.get(reverse("identity:account"))
    assert response.status_code == 200
    return response.content.decode()


def begun(user: User, count: int = 1) -> None:
    """So many sign-ins that ``user`` started."""
    AuthorizationRequest.objects.bulk_create(
        AuthorizationRequest(
            state_digest=f"{SECRET}{number}",
            browser_digest=SECRET,
            environment="test",
            purpose=Purpose.LINK,
            user=user,
            code_verifier=SECRET,
            redirect_uri="/",
            next=f"/wanted/{number}/",
            expires_at=timezone.now(),
        )
        for number in range(count)
    )


def hold_everything(user: User) -> LinkedIdentity:
    """One record in each place, with a secret in each withheld text."""
    identity, now = make_identity(user, last_error=SECRET), timezone.now()
    make_claim(identity)
    make_grant(identity)
    TokenGrant.objects.update(access_token=SECRET, refresh_token=SECRET)
    make_event(
        identity,
        "claim.issued",
        event_id=SECRET,
        event_digest=SECRET,
        error=SECRET,
    )
    ConnectRedemption.objects.create(code_digest=SECRET, user=user, expires_at=now)
    begun(user)
    SubjectLock.hold(identity.subject_digest)
    return identity


@pytest.mark.parametrize("page", ["account", "download"])
def test_nobody_sees_secrets_or_somebody_elses(client, ada, page):
    """Neither other people's records, nor tokens, verifier, digests and internals."""
    hold_everything(ada)
    other = make_identity(make_user("eve"), subject="subject-of-eve")
    make_claim(other, "unique_human")

    content = client.get(reverse(f"identity:{page}")).getvalue().decode()
    assert "subject-1" in content
    assert "ada@example.org" in content
    # What happened is told in words too, above all that is stored.
    activity = content.partition("<h2>Activity</h2>")[2]
    for words in ("You connected", "A proof was issued"):
        assert (words in activity) is (page == "account")
    for hidden in (SECRET, "subject-of-eve", "unique_human"):
        assert hidden not in content

    response = Client().get(reverse(f"identity:{page}"))
    assert response["Location"].startswith("/identity/login/")
    assert response["Cache-Control"] == "private, no-store"


def test_the_download_is_complete(client, ada):
    tables = {place.model._meta.model_name: [set(place.shown)] for place in PLACES}
    nothing = json.loads(client.get(reverse("identity:download")).getvalue())
    account = nothing.pop("account")
    assert account == {"email": "ada@example.org", "first_name": "Ada"}
    assert nothing == {table: [] for table in tables}
    identity = hold_everything(ada)
    response = client.get(reverse("identity:download"))
    assert response["Content-Type"] == "application/json"
    assert response["Content-Disposition"] == 'inline; filename="my-identity.json"'
    assert response["Cache-Control"] == "private, no-store"
    held = json.loads(response.getvalue())
    assert held.pop("account") == account
    columns = {
        table: [set(record) for record in records] for table, records in held.items()
    }
    assert columns == tables
    (linked,) = held["linkedidentity"]
    written = datetime.fromisoformat(linked["created_at"])

    assert abs(written - identity.created_at) < timedelta(milliseconds=1)
    assert held["storedclaim"][0]["value"] is True


def test_the_page_shows_the_newest_and_counts_all(
    client,
    ada,
    django_assert_max_num_queries,
):
    identity = make_identity(ada)
    for number in range(20):
        make_claim(identity, provider=f"vendor-{number}")
    begun(ada, 101)
    with django_assert_max_num_queries(19):
        page = account(client)
    assert re.findall(r'identity-count">([\d,]+)<', page) == ["1", "1", "20", "101"]
    assert page.count('<details class="identity-kind"') == 4
    assert "These are the newest 100. The download has all of them." in page
    assert ("/wanted/100/" in page, "/wanted/0/" in page) == (True, False)
    AuthorizationRequest.objects.filter(next="/wanted/0/").delete()
    assert "These are the newest" not in account(client)


PROOFS = {
    "valid": ({}, "<span>valid</span>"),
    "a country": (
        {"claim_type": "country_resident", "value": "NG"},
        '-value">Nigeria</bdi>',
    ),
    "ran out": (
        {"valid_until": timezone.now() - timedelta(hours=3)},
        "ran out 3 hours ago",
    ),
    "revoked": ({"revoked_at": timezone.now()}, "<span>revoked</span>"),
    "not confirmed": ({"valid_until": None}, "<span>not confirmed</span>"),
    "a verified no": (
        {"value": {"verified": True, "value": False}},
        "does not apply to you",
    ),
}


@pytest.mark.parametrize(("claim", "words"), PROOFS.values(), ids=PROOFS)
def test_a_proof_says_whether_it_holds(client, ada, claim, words):
    make_claim(make_identity(ada), **claim)
    page = account(client).replace("\xa0", " ")
    assert words in page
    assert ("<span>valid</span>" in page) is (claim == {} or "claim_type" in claim)


def test_the_page_has_words_and_the_download_codes(client, ada):
    identity = make_identity(ada, kyc_provider="Verify Ltd")
    make_claim(identity, "country_resident", {"verified": True, "country": "NG"})
    make_claim(identity, "unique_human", {"verified": False})
    make_event(identity, "kyc.verified", payload={"kyc_level": "level_2"})
    begun(ada)
    AuthorizationRequest.objects.update(outcome="request_expired")

    shown = account(client).partition('id="held"')[2]
    held = re.findall(r"<dd[^>]*>(.*?)</dd>", shown, re.DOTALL)
    words = {
        "verification at level 2",
        "Nigeria",
        "no",
        "you were verified",
        "not completed",
    }
    codes = ("level_2", "country_resident", "request_expired", "{", "&quot;")
    assert words <= set(held)
    assert not [code for code in codes if code in "".join(held)]

    download = json.loads(client.get(reverse("identity:download")).getvalue())
    assert download["linkedidentity"][0]["kyc_level"] == "level_2"
    assert download["webhookevent"][0]["payload"] == {"kyc_level": "level_2"}


@pytest.mark.parametrize(
    ("how", "words", "action"),
    [
        (
            "dead grant",
            "Your permission has ended",
            "Check again with your identity service",
        ),
        ("person", "You took back your consent", "Allow again"),
        ("site", "This site ended your connection on", "Connect again"),
    ],
)
def test_what_keeps_an_account_back_is_said(client, ada, how, words, action):
    identity = make_identity(ada)
    assert words not in account(client)
    if how == "dead grant":
        make_grant(identity, needs_reauthorization=True)
    elif how == "site":
        interventions.revoke([identity])
    else:
        LinkedIdentity.objects.update(consent=Consent.REVOKED)
        # As a process leaves it that dies before the link is granted.
        assert "It ended on" not in account(client)
        LinkedIdentity.objects.update(revoked_at=timezone.now())
    page = account(client)

    assert words in page
    assert ("You took back your consent" in page) is (how == "person")
    assert buttons(page)[0] == action


@pytest.mark.parametrize(
    ("status", "shown"),
    [("rejected", "Not accepted"), ("pending", "Being verified"), ("", "Not verified")],
)
def test_the_verification_is_told_as_it_is(client, ada, status, shown):
    make_identity(
        ada,
        kyc_status=status,
        kyc_level="",
        scopes=["claims:read", "kyc:read"],
    )
    page = account(client)
    assert f"<dt>Verification</dt><dd>{shown}</dd>" in page
    assert ("try again there, then come back here." in page) is (status == "rejected")
    # The settings name no page of the service to lead to.
    assert "Get verified" not in buttons(page)


def test_a_code_alone_is_not_renewed(client, ada):
    identity = make_identity_by_code(ada)
    page = account(client)
    without_erasure = [each for each in REST if each != "Erase my data"]
    assert "You were verified with a code" in page
    assert buttons(page) == [
        "This is not me: undo",
        "Continue with your identity service",
        "Enter a new code",
        *without_erasure,
    ]
    assert f'href="{reverse("identity:connect")}?next=/identity/account/"' in page
    identity.signed_in_at = timezone.now() + timedelta(minutes=1)
    identity.linked_via = LinkedVia.OAUTH
    identity.save(update_fields=["signed_in_at", "linked_via"])
    page = account(client)
    assert "You were verified with a code" not in page
    assert buttons(page) == ["Check again with your identity service", *REST]


def test_a_sign_out_is_on_the_page(client, ada):
    """It ends the session, by POST only, and leads to the site's home."""
    address = reverse("identity:sign_out")
    assert client.get(address)["Location"] == "/identity/account/"
    assert client.get(reverse("identity:account")).status_code == 200
    assert client.post(address)["Location"] == "/"
    assert not client.cookies["sessionid"].value
    with override_settings(LOGOUT_REDIRECT_URL="/bye/"):
        assert client.post(address)["Location"] == "/bye/"


@pytest.mark.parametrize("made", [True, False], ids=["made", "older"])
def test_people_erase_themselves_and_get_a_receipt(client, ada, made):
    hold_everything(ada)
    LinkedIdentity.objects.update(made_account=str(ada.pk) if made else "")
    question = client.get(reverse("identity:erase")).content.decode()
    closes = "Your account here will be emptied and closed, too.</strong>"
    stays = "Your account here stays.</strong>"
    assert (closes in question, stays in question) == (made, not made)
    assert ("It came with the connection." in question) is made
    assert ("It is older than the connection." in question) is not made
    assert LinkedIdentity.objects.exists()
    page = client.post(reverse("identity:erase"), follow=True).content.decode()
    receipt = ErasureReceipt.objects.earliest("pk")
    assert f"The number of your receipt is {receipt.pk}." in page
    # The number is in the browser's cookie alone, so the page may be loaded again.
    page = client.get(reverse("identity:answer")).content.decode()
    assert f"The number of your receipt is {receipt.pk}." in page
    assert ("Your account stays." in page) is not made
    assert not LinkedIdentity.objects.exists()
    ada.refresh_from_db()

    assert ada.is_active is not made
    assert client.get(reverse("identity:account")).status_code == (302 if made else 200)


@pytest.mark.parametrize("state", ["linked", "account alone", "nothing"])
def test_the_panel_and_the_download_are_one_list(client, ada, state):
    if state == "linked":
        hold_everything(ada)
    elif state == "nothing":
        User.objects.update(email="", first_name="", last_name="")
    exported = client.get(reverse("identity:download")).json()
    tables = [table for table, rows in exported.items() if rows]
    wanted = [table_name({"account": "user"}.get(table, table)) for table in tables]
    page = account(client)
    assert re.findall('identity-kind-title">([^<]+)<', page) == wanted
    assert ("Nothing." in page) is (state == "nothing")
    assert bool(wanted) is (state != "nothing")


def away(*_given):
    raise OperationalError


def test_the_page_is_there_while_the_database_is_away(monkeypatch, as_in_production):
    """It has the session, too, and the name of the site."""
    monkeypatch.setattr(SessionStore, "load", away)
    monkeypatch.setattr(names, "get_current_site", away)
    monkeypatch.setattr(names.apps, "is_installed", lambda _app: True)
    browser = Client()
    browser.cookies["sessionid"] = "a" * 32

    assert browser.get(reverse("identity:account")).status_code == 503


def test_who_looks_at_the_page_has_not_failed_to_disconnect(
    client,
    ada,
    caplog,
    monkeypatch,
    as_in_production,
):
    monkeypatch.setattr(dossier, "dossier_of", away)

    assert client.get(reverse("identity:account")).status_code == 503
    assert "identity.unexpected code=storage_unavailable" in caplog.text
    assert "disconnect" not in caplog.text
