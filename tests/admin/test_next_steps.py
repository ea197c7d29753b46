"""What an operator reads at night: where it is, whom it is about, and what to do next."""

import html
import re
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.urls import include, path, reverse
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.timezone import localtime

from django_identity.error_table import ERRORS, hint_of
from django_identity.gates import claim_required
from django_identity.lifecycle.minute.upkeep import refetch_these
from django_identity.models import (
    ErasureReceipt,
    LinkedIdentity,
    TokenGrant,
    WebhookEvent,
)
from django_identity.policy import IdentityPolicy
from tests import fake_service
from tests.admin.operators import (
    EVENT,
    IDENTITY,
    OVERVIEW,
    RECEIPT,
    page,
    press,
    staff,
)
from tests.factories import (
    change_each,
    make_claim,
    make_grant,
    make_identity,
    make_user,
)
from tests.views.connect.pages import LIVE

pytestmark = pytest.mark.django_db


@claim_required("age_over_18")
def adults(request: HttpRequest) -> HttpResponse:
    return HttpResponse("in")


urlpatterns = [
    *(path(f"room-{number}/", adults) for number in range(7)),
    path("", include("tests.urls")),
]


def text_of(markup: str) -> str:
    return re.sub(r"(?:<[^>]+>|\s)+", " ", markup.replace("\xa0", " "))


def test_the_index_leads_to_the_overview():
    link = f'href="{reverse(OVERVIEW)}"'
    assert link in page(staff("view_linkedidentity"), "admin:index")
    assert link not in page(staff("view_webhookevent"), "admin:index")


def test_a_row_of_the_other_environment_is_marked(operator, identity, settings):
    """On its page and before it is revoked. A row of the settings' environment is not."""
    shown = (
        page(operator, IDENTITY, identity.pk),
        press(operator, "revoke", identity).content.decode(),
    )
    assert not [text for text in shown if "TEST DATA" in text]
    settings.DJANGO_IDENTITY = {**settings.DJANGO_IDENTITY, **LIVE}
    assert "TEST DATA" in page(operator, IDENTITY, identity.pk)
    assert "TEST DATA" in press(operator, "revoke", identity).content.decode()


@pytest.mark.urls(__name__)
def test_a_strip_says_where_it_ends(operator, identity):
    """From the consent to the gates, each with its state; a gate names the pages that it guards."""

    def strip() -> str:
        shown = page(operator, IDENTITY, identity.pk)
        return text_of(shown.partition("identity-strip")[2].partition("</ol>")[0])

    since = date_format(localtime(identity.arrived_at), "DATETIME_FORMAT")
    assert f"Consent granted since {since} Permission held since " in strip()
    assert "Credential valid for 5 hours issued " in strip()
    assert "Claims age_over_18 valid for 23 hours Gates 3 of 5 open" in strip()
    pages = text_of(page(operator, IDENTITY, identity.pk))
    guarded = pages.partition("passes now age_over_18 ")[2]
    assert guarded.startswith("/room-0/ /room-1/ /room-2/ /room-3/ /room-4/ and 2 more")

    long_ago = timezone.now() - timedelta(hours=3)
    TokenGrant.objects.update(needs_reauthorization=True)
    identity.claims.update(revoked_at=long_ago)
    assert "Permission lost The person has to sign in again" in strip()
    assert "age_over_18 revoked 3 hours ago Gates 2 of 5 open" in strip()
    assert "not proven" not in page(operator, IDENTITY, identity.pk)
    past = timezone.now() - timedelta(hours=12)
    LinkedIdentity.objects.update(credential_expires_at=past, refetch_due_at=past)
    assert "Credential ran out 12 hours ago" in strip()
    shown = text_of(page(operator, IDENTITY, identity.pk))
    assert "Next re-fetch was due 12 hours ago" in shown

    identity.claims.all().delete()
    TokenGrant.objects.all().delete()
    change_each(consent="revoked", revoked_at=long_ago, credential_expires_at=None)
    assert "Consent revoked revoked on" in strip()
    assert "Permission nothing" in strip()
    assert "Credential nothing" in strip()
    assert "Claims nothing Gates 0 of 5 open" in strip()


def test_an_event_links_to_its_person(operator, identity):
    """To who may see identities, and as long as the event has its content."""
    event = WebhookEvent.objects.get()
    link = f'href="{reverse(IDENTITY, args=[identity.pk])}"'
    assert link in page(operator, EVENT, event.pk)
    assert link not in page(staff("view_webhookevent"), EVENT, event.pk)
    # Of an earlier link of the subject, perhaps to another account.
    WebhookEvent.objects.update(subject="", payload=None)
    assert link not in page(operator, EVENT, event.pk)


def test_what_an_operator_reads_about_an_error_is_theirs():
    """Every failure of service, site or database has a hint, and none says "your service"."""
    for code, row in ERRORS.items():
        if row.status >= 500:
            assert row.hint, code
            assert not re.search(r"\b[Yy]our?\b", hint_of(code)), code


@pytest.mark.django_db(transaction=True)
def test_failed_refetches_are_in_the_timeline(operator, service):
    """When the newest one was, how many there were, and why; a success ends the entry."""
    identity = make_identity(make_user(), scopes=["claims:read"], refetch_failures=6)
    make_grant(identity)
    service.answers["claims"] = fake_service.html("503 No")
    list(refetch_these([identity.pk]))
    shown = text_of(page(operator, IDENTITY, identity.pk))
    assert "Re-fetch failed (the latest) · service_unavailable" in shown
    assert "failed 7 times" in shown
    service.answers.clear()
    list(refetch_these([identity.pk]))
    assert "Re-fetch failed" not in page(operator, IDENTITY, identity.pk)


@pytest.mark.parametrize("grant", ["live", "dead", "none"])
def test_a_refetch_is_offered_where_it_can_work(operator, identity, grant):
    if grant == "none":
        TokenGrant.objects.all().delete()
    TokenGrant.objects.update(needs_reauthorization=grant == "dead")
    shown = page(operator, IDENTITY, identity.pk)
    assert ("Re-fetch now</button>" in shown) is (grant == "live")


def test_a_pending_erasure_says_what_to_do(operator, identity):
    receipt = ErasureReceipt.objects.get()
    receipt.error = "BillingSystemDown"
    receipt.next_attempt_at = timezone.now() + timedelta(hours=1, minutes=1)
    receipt.save()

    shown = text_of(page(operator, RECEIPT, receipt.pk))
    looked_at = page(staff("view_erasurereceipt"), RECEIPT, receipt.pk)

    for words in (
        "BillingSystemDown", "Done: the identity with its tokens", "Pending: what the site",
        f"identity.erasure.failed, row {receipt.pk}.", "Try now", "by itself: in 1 hour.",
        "The account: ada",
    ):  # fmt: skip
        assert words in shown, words
    # Nobody is told to press a button that is not there.
    assert not re.search("The account:|Try now", looked_at)


@pytest.mark.parametrize(
    ("fields", "policy", "fate"),
    [
        ({}, {}, "The account is emptied and disabled."),
        ({}, {"erasure": "delete"}, "The account is deleted."),
        ({"account_made": False}, {}, "The account stays. It is older than the link."),
        ({}, {"keeps_account": lambda *_, **__: True}, "The account stays. The site's policy"),
    ],
)  # fmt: skip
def test_an_erasure_says_beforehand_what_it_does(
    operator, monkeypatch, fields, policy, fate
):
    identity = make_identity(make_user("kemi"), **fields)
    make_claim(identity)
    for name, value in policy.items():
        monkeypatch.setattr(IdentityPolicy, name, value)
    asked = html.unescape(text_of(press(operator, "erase", identity).content.decode()))
    assert fate in asked
    assert "Proofs: 1" in asked
    press(operator, "erase", identity, confirmed="yes")
    receipt = ErasureReceipt.objects.get()
    assert bool(receipt.account_kept) is ("stays" in fate)
    assert User.objects.filter(pk=identity.user_id).exists() is ("deleted" not in fate)
