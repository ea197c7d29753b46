"""The account page and the file with everything held."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User
from django.test import AsyncClient, Client
from django.urls import reverse
from django.utils import timezone, translation

from django_identity.lifecycle.erasure.dossier import PLACES
from django_identity.models import (
    AuthorizationRequest,
    ConnectRedemption,
    Consent,
    EventOutcome,
    LinkedIdentity,
    LinkedVia,
    Purpose,
    TokenGrant,
    WebhookEvent,
)
from django_identity.templatetags.identity_pages import moment
from tests.records import make_claim, make_identity, make_identity_by_code, make_user

pytestmark = pytest.mark.django_db

SECRET = "must-never-be-shown"


@pytest.fixture
def ada(client: Client) -> User:
    user = make_user()
    client.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
    return user


def account(client: Client) -> str:
    response = client.get(reverse("identity:account"))
    assert response.status_code == 200
    return response.content.decode()


def download(client: Client) -> dict[str, list[dict[str, object]]]:
    return json.loads(client.get(reverse("identity:download")).getvalue())


def actions(page: str) -> list[str]:
    """What can be done on the page, as its buttons say it, in their order."""
    pattern = r'class="identity-button[ "][^>]*>(.*?)</(?:a|button)>'
    found = re.findall(pattern, page, re.DOTALL)
    return [re.sub(r"<[^>]+>|\s+", " ", text).strip() for text in found]


def hold_everything(user: User) -> LinkedIdentity:
    """One record in each place, with a secret in each withheld text."""
    identity = make_identity(user, credential=SECRET, last_error=SECRET)
    make_claim(identity)
    TokenGrant.objects.create(
        identity=identity,
        access_token=SECRET,
        refresh_token=SECRET,
        access_expires_at=timezone.now(),
    )
    WebhookEvent.objects.create(
        application="default",
        event_id=SECRET,
        event_digest=SECRET,
        event_type="claim.issued",
        occurred_at=timezone.now(),
        received_at=timezone.now(),
        subject=identity.subject,
        subject_digest=identity.subject_digest,
        payload={"user_id": identity.subject},
        outcome=EventOutcome.APPLIED,
        error=SECRET,
    )
    ConnectRedemption.objects.create(
        code_digest=SECRET,
        application="default",
        environment="test",
        user=user,
        expires_at=timezone.now(),
        kyc_url=SECRET,
    )
    AuthorizationRequest.objects.create(
        state_digest=SECRET,
        browser_digest=SECRET,
        application="default",
        environment="test",
        purpose=Purpose.LINK,
        user=user,
        code_verifier=SECRET,
        redirect_uri="/",
        expires_at=timezone.now(),
    )
    return identity


@pytest.mark.parametrize("page", ["account", "download"])
def test_nobody_sees_nothing(client: Client, page: str) -> None:
    """Whoever is not signed in is sent to sign in, and never told anything."""
    hold_everything(make_user())
    response = client.get(reverse(f"identity:{page}"))
    assert response.status_code == 302
    assert response["Location"].startswith("/identity/login/")
    assert response["Cache-Control"] == "no-store"


@pytest.mark.parametrize("page", ["account", "download"])
def test_nobody_sees_somebody_elses(client: Client, ada: User, page: str) -> None:
    """Only the signed-in person's own records are shown."""
    make_identity(ada, subject="subject-of-ada")
    other = make_identity(make_user("eve"), subject="subject-of-eve")
    make_claim(other, "unique_human")
    content = client.get(reverse(f"identity:{page}")).getvalue()
    assert b"subject-of-ada" in content
    assert b"subject-of-eve" not in content
    assert b"unique_human" not in content


@pytest.mark.parametrize("page", ["account", "download"])
def test_no_secret_is_shown(client: Client, ada: User, page: str) -> None:
    """Neither tokens nor credential, verifier, digests and internals."""
    hold_everything(ada)
    assert SECRET not in client.get(reverse(f"identity:{page}")).getvalue().decode()


def test_the_download_is_complete(client: Client, ada: User) -> None:
    """A JSON attachment: every place by name, every shown column, times in ISO 8601."""
    identity = hold_everything(ada)
    response = client.get(reverse("identity:download"))
    assert response["Content-Type"] == "application/json"
    assert response["Content-Disposition"] == 'attachment; filename="my-identity.json"'
    assert response["Cache-Control"] == "no-store"
    held = json.loads(response.getvalue())
    assert {table: [set(record) for record in records] for table, records in held.items()} == {
        place.model._meta.model_name: [set(place.shown)] for place in PLACES
    }
    (linked,) = held["linkedidentity"]
    written = datetime.fromisoformat(linked["created_at"])
    assert abs(written - identity.created_at) < timedelta(milliseconds=1)
    assert held["storedclaim"][0]["value"] is True


def test_a_download_of_nothing_says_so(client: Client, ada: User) -> None:
    """Somebody of whom nothing is held gets the same file with empty lists."""
    assert set(download(client)) == {place.model._meta.model_name for place in PLACES}
    assert not any(download(client).values())


def test_records_are_grouped_by_kind(client: Client, ada: User) -> None:
    """Four claims are one heading with a count, not four headings."""
    identity = make_identity(ada)
    for number in range(4):
        make_claim(identity, provider=f"vendor-{number}")
    page = account(client)
    assert page.count("<details") == 2
    assert '>Claims</span> <span class="identity-count">4</span>' in page


def test_a_proof_says_how_long(client: Client, ada: User) -> None:
    """In words and as a time that machines read, with its value where that says something."""
    until = timezone.now() + timedelta(hours=5, seconds=30)
    identity = make_identity(ada)
    make_claim(identity, "country_resident", "NG", valid_until=until)
    make_claim(identity, "kyc_verified", {"verified": True}, valid_until=until)
    page = account(client).replace("\xa0", " ")
    written = [datetime.fromisoformat(text) for text in re.findall(r'<time datetime="(.*?)"', page)]
    assert until.replace(microsecond=0) in written
    assert "in 5 hours" in page
    assert page.count('<span class="identity-value">') == 1
    assert '<span class="identity-value">NG</span>' in page


@pytest.mark.parametrize(
    ("language", "words"),
    [("en", "Nov. 21, 2026, 9:09 p.m. UTC"), ("fr", "21 novembre 2026 21:09 UTC"),
     ("ar", "21 نوفمبر، 2026 9:09 م UTC")],
)  # fmt: skip
def test_a_time_is_written_as_the_language_writes_it(language: str, words: str) -> None:
    """Django knows no date with a time in Arabic, and falls back to the English order."""
    with translation.override(language), timezone.override(UTC):
        assert words in moment(datetime(2026, 11, 21, 21, 9, tzinfo=UTC))


@pytest.mark.parametrize(
    ("claim", "words"),
    [
        ({"valid_until": timezone.now() - timedelta(hours=3)}, "ran out 3 hours ago"),
        ({"revoked": True}, "<span>revoked</span>"),
        ({"valid_until": None}, "<span>not proven</span>"),
        ({"value": False}, "the identity service says no"),
        ({"value": {"verified": True, "value": False}}, "the identity service says no"),
    ],
)
def test_a_proof_that_does_not_hold(
    client: Client, ada: User, claim: dict[str, object], words: str
) -> None:
    """What ran out, was revoked, denied or never proven is not called proven."""
    make_claim(make_identity(ada), **claim)
    page = account(client).replace("\xa0", " ")
    assert words in page
    assert "proven until" not in page


def test_a_dead_grant_offers_renewal(client: Client, ada: User) -> None:
    """A banner says that only the person can bring fresh proofs."""
    identity = make_identity(ada)
    assert "can no longer ask" not in account(client)
    TokenGrant.objects.create(
        identity=identity,
        access_token="sealed",
        access_expires_at=timezone.now(),
        needs_reauthorization=True,
    )
    page = account(client)
    assert "can no longer ask" in page
    assert 'role="alert"' in page


def test_a_code_alone_is_not_renewed(client: Client, ada: User) -> None:
    """There are no tokens to renew: the page offers a sign-in, which brings proofs, or a new code.

    Once somebody has signed in, the page offers to renew as to anybody else.
    """
    identity = make_identity_by_code(ada)
    page = account(client)
    assert "You were verified with a code." in page
    assert actions(page) == ["This is not me: undo", "Sign in with identity", "Enter a new code",
                             "Download what is held", "Disconnect"]  # fmt: skip
    assert f'href="{reverse("identity:connect", args=["default"])}?next=/identity/account/"' in page
    identity.signed_in_at = timezone.now() + timedelta(minutes=1)
    identity.linked_via = LinkedVia.OAUTH
    identity.save()
    page = account(client)
    assert "You were verified with a code." not in page
    assert actions(page) == ["Renew", "Download what is held", "Disconnect"]


def test_a_consent_by_code_comes_back_by_code(client: Client, ada: User) -> None:
    """Whoever came with a code and took back their consent may give it again with another one."""
    make_identity_by_code(ada, consent=Consent.REVOKED)
    assert actions(account(client))[:2] == ["Give consent again", "Enter a new code"]


def test_consent_taken_back_is_said(client: Client, ada: User) -> None:
    """The page says so, and asks for it again instead of renewing."""
    make_identity(ada, consent=Consent.REVOKED)
    page = account(client)
    assert "You took back your consent." in page
    assert "Give consent again" in page


def test_an_account_without_an_identity_may_link_one(client: Client, ada: User) -> None:
    """The way to link is the page's only action."""
    page = account(client)
    assert "No identity is linked" in page
    assert reverse("identity:disconnect", args=["default"]) not in page


def test_the_page_takes_few_queries(
    client: Client, ada: User, django_assert_max_num_queries: object
) -> None:
    """One for each place, whatever the number of records, and the session's."""
    identity = hold_everything(ada)
    for number in range(20):
        make_claim(identity, provider=f"vendor-{number}")
    with django_assert_max_num_queries(len(PLACES) + 5):
        account(client)


def begun(user: User, count: int) -> None:
    """So many sign-ins that ``user`` started."""
    AuthorizationRequest.objects.bulk_create(
        AuthorizationRequest(
            state_digest=f"{user.pk}-{number}", browser_digest="b", application="default",
            environment="test", purpose=Purpose.LINK, user=user, code_verifier=SECRET,
            redirect_uri="/", next=f"/wanted/{number}/", expires_at=timezone.now(),
        )
        for number in range(count)
    )  # fmt: skip


def test_the_page_shows_the_newest_and_counts_all(
    client: Client, ada: User, django_assert_max_num_queries: Any
) -> None:
    """However much there is, the page has 100 of a kind, and costs the same queries."""
    make_identity(ada)
    begun(ada, 101)
    with django_assert_max_num_queries(16):
        page = account(client)
    assert re.findall(r'identity-count">([\d,]+)<', page) == ["1", "101"]
    assert "These are the newest 100. The download has all of them." in page
    assert ("/wanted/100/" in page, "/wanted/0/" in page) == (True, False)
    AuthorizationRequest.objects.filter(next="/wanted/0/").delete()
    assert "These are the newest" not in account(client)


def test_the_download_is_streamed(client: Client, ada: User) -> None:
    """Piece by piece, each bounded, and all of it is there in the end."""
    begun(ada, 1_201)
    begun(make_user("eve"), 3)
    response = client.get(reverse("identity:download"))
    assert response.streaming
    pieces = list(response)
    assert len([piece for piece in pieces if b"/wanted/" in piece]) == 3
    wanted = [held["next"] for held in json.loads(b"".join(pieces))["authorizationrequest"]]
    assert wanted == [f"/wanted/{number}/" for number in range(1_201)]


def test_an_asynchronous_server_streams_it_too(ada: User) -> None:
    """Django would collect a plain iterator there, and warn."""
    begun(ada, 501)

    async def downloaded() -> list[bytes]:
        browser = AsyncClient()
        await browser.aforce_login(ada, backend="django.contrib.auth.backends.ModelBackend")
        response = await browser.get(reverse("identity:download"))
        assert response.is_async
        return [piece async for piece in response]

    held = json.loads(b"".join(async_to_sync(downloaded)()))
    assert len(held["authorizationrequest"]) == 501
