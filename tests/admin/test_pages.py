"""The admin's pages: what they show, and what they never show."""

import re
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.cache import cache
from django.test import Client, override_settings
from django.urls import path, reverse
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.timezone import localtime

from django_identity.admin import overview
from django_identity.exceptions.table import ERRORS, hint_of
from django_identity.gates import claim_required, recent_sign_in_required
from django_identity.instruments.signs import charts, of_rows
from django_identity.lifecycle.ground import runs
from django_identity.lifecycle.minute.upkeep import refetch_these
from django_identity.models import (
    Consent,
    ErasureReceipt,
    EventOutcome,
    LinkedIdentity,
    TokenGrant,
    WebhookEvent,
)
from tests import fake_service, urls
from tests.admin.operators import (
    ADDRESS,
    EVENT,
    EVENTS,
    IDENTITIES,
    IDENTITY,
    OVERVIEW,
    RECEIPT,
    RECEIPTS,
    SUBJECT,
    TOKENS,
    VERIFIER,
    every_page,
    page,
    press,
    staff,
)
from tests.factories import (
    LONG_AGO,
    change_each,
    make_claim,
    make_event,
    make_grant,
    make_identity,
    make_user,
)
from tests.views.connect.pages import LIVE

pytestmark = pytest.mark.django_db

MODELS = (LinkedIdentity, WebhookEvent, ErasureReceipt)
adults = claim_required("age_over_18")(urls.home)
# A site with two gates more than the others.
urlpatterns = [
    *(path(f"room-{number}/", adults) for number in range(7)),
    *urls.urlpatterns,
    path("payout/", recent_sign_in_required(10)(urls.home)),
]


def test_no_secret_stands_on_any_page(operator, identity):
    kept = (identity.grant.access_token, identity.grant.refresh_token)
    bodies = {value.rpartition(".")[2] for value in kept}
    pages = list(every_page(operator))
    assert len(pages) == 15
    for secret in (*TOKENS, *kept, *bodies, VERIFIER):
        assert not any(secret in text for text in pages)


def test_nothing_can_be_added_changed_or_deleted(operator, identity):
    """Not even by a superuser: what the service owns is looked at, or erased."""
    for row in (model.objects.get() for model in MODELS):
        name = f"admin:django_identity_{row._meta.model_name}"
        assert operator.get(reverse(f"{name}_add")).status_code == 403
        assert operator.get(reverse(f"{name}_delete", args=[row.pk])).status_code == 403
        before = row._meta.model.objects.values().get()
        changed = operator.post(
            reverse(f"{name}_change", args=[row.pk]),
            dict.fromkeys(before, "x"),
        )
        assert changed.status_code == 403
        assert row._meta.model.objects.values().get() == before


@pytest.mark.parametrize("name", [IDENTITIES, EVENTS, RECEIPTS, OVERVIEW])
def test_a_page_needs_its_permission(name):
    assert staff().get(reverse(name)).status_code == 403
    assert Client().get(reverse(name)).status_code == 302


def test_the_page_of_an_identity(operator, identity):
    text = page(operator, IDENTITY, identity.pk)
    for words in (
        "Signed proofs, such as being 18 or older",
        "sha256:proof",
        ADDRESS,
        SUBJECT,
        "The service took longer than TIMEOUT.",
        "Linked · sign-in",
        "claim.issued",
    ):
        assert words in text


def test_what_the_service_wrote_is_escaped(operator, identity):
    evil = "<script>alert(1)</script>"
    make_claim(identity, "kyc_verified", {"provider": evil}, provider=evil)
    change_each(subject=evil, kyc_level=evil, last_error=evil, scopes=[evil])
    WebhookEvent.objects.update(
        payload={"a": evil},
        subject=evil,
        event_type=evil,
        error=evil,
    )
    assert not [text for text in every_page(operator) if evil in text]


def test_an_event_shows_its_payload_indented(operator, identity):
    event = WebhookEvent.objects.get()
    assert "{\n  &quot;user_id&quot;: &quot;" in page(operator, EVENT, event.pk)
    WebhookEvent.objects.update(payload={"note": "gpj\u202e.exe"})
    text = page(operator, EVENT, event.pk)
    assert "\u202e" not in text
    assert "gpj\\u202e.exe" in text
    nameless = {"payload": None, "event_id": "", "subject_digest": ""}
    WebhookEvent.objects.update(**nameless, outcome="ignored")
    text = page(operator, EVENT, event.pk)
    for words in ("no longer held", "it names nobody"):
        assert words in text
    WebhookEvent.objects.update(error="OperationalError", outcome="")
    assert "The event could not be applied" in page(operator, EVENT, event.pk)


def test_a_user_with_an_identity_is_not_deleted_by_the_way(operator, identity):
    operator.post(
        reverse("admin:auth_user_delete", args=[identity.user_id]),
        {"post": "yes"},
    )
    assert User.objects.filter(pk=identity.user_id).exists()


def gates_of(operator: Client, identity: LinkedIdentity) -> str:
    """The section of the person's page."""
    shown = page(operator, IDENTITY, identity.pk)
    assert "code of the site asks about are not listed" in shown
    return shown[shown.index('id="identity-gates"') :].partition("</section>")[0]


@pytest.mark.urls(__name__)
def test_the_sites_own_gates_with_their_values(operator):
    identity = make_identity(make_user("ben"))
    make_claim(identity, "country_resident", {"country": "EG"})

    pattern = r"<dt><code>(.*?)</code>.*?identity-badge[^>]*>(.*?)<"
    rows = dict(re.findall(pattern, gates_of(operator, identity), re.S))
    User.objects.filter(pk=identity.user_id).update(is_active=False)
    section = gates_of(operator, identity)

    assert (
        rows.items()
        >= {
            "age_over_18": "closed",
            "country_resident=NG": "closed",
            "level_2": "open",
            "recent_sign_in (10 min)": "asks at the visit",
        }.items()
    )
    assert "identity-open" not in section
    assert "Your account on this site is disabled." in section


@override_settings(USE_THOUSAND_SEPARATOR=True, LANGUAGE_CODE="de")
def test_the_buttons_of_a_page_name_its_row(operator):
    """Also where a thousand is written ``1.000``."""
    identity = make_identity(make_user("ada"), pk=1000)
    make_event(identity, "claim.issued", pk=1000)
    ErasureReceipt.objects.create(requested_at=timezone.now(), pk=1000)
    for name in (IDENTITY, EVENT, RECEIPT):
        named = re.findall(
            r'name="_selected_action" value="([^"]*)"',
            page(operator, name, 1000),
        )
        assert set(named) == {"1000"}, name


def text_of(markup: str) -> str:
    return re.sub(r"(?:<[^>]+>|\s)+", " ", markup.replace("\xa0", " "))


def test_the_index_leads_to_the_overview():
    link = f'href="{reverse(OVERVIEW)}"'
    assert link in page(staff("view_linkedidentity"), "admin:index")
    assert link not in page(staff("view_webhookevent"), "admin:index")


def test_a_row_of_the_other_environment_is_marked(operator, identity, settings):
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
    past = timezone.now() - timedelta(hours=12)
    LinkedIdentity.objects.update(credential_expires_at=past, refetch_due_at=past)
    assert "Permission lost The person has to sign in again" in strip()
    assert "Credential ran out 12 hours ago" in strip()
    assert "age_over_18 revoked 3 hours ago Gates 2 of" in strip()
    shown = text_of(page(operator, IDENTITY, identity.pk))
    assert "Next re-fetch was due 12 hours ago" in shown
    assert "not proven" not in shown

    identity.claims.all().delete()
    TokenGrant.objects.all().delete()
    change_each(consent="revoked", revoked_at=long_ago, credential_expires_at=None)
    assert "Consent revoked revoked on" in strip()
    for name in ("Permission", "Credential", "Claims"):
        assert f"{name} nothing" in strip()
    assert "Gates 0 of" in strip()


def test_an_event_links_to_its_person(operator, identity):
    event = WebhookEvent.objects.get()
    link = f'href="{reverse(IDENTITY, args=[identity.pk])}"'
    assert link in page(operator, EVENT, event.pk)
    assert link not in page(staff("view_webhookevent"), EVENT, event.pk)
    # Of an earlier link of the subject, perhaps to another account.
    WebhookEvent.objects.update(subject="", payload=None)
    assert link not in page(operator, EVENT, event.pk)


def test_what_an_operator_reads_about_an_error_is_theirs():
    for code, row in ERRORS.items():
        if row.status >= 500:
            assert row.hint, code
            assert not re.search(r"\b[Yy]our?\b", hint_of(code)), code


@pytest.mark.django_db(transaction=True)
def test_failed_refetches_are_in_the_timeline(operator, service):
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


# The overview: what the doctor finds in the rows, and two charts


def make_identities(count: int, **fields: Any) -> None:
    first = User.objects.count()
    for number in range(first, first + count):
        make_identity(make_user(f"u{number}"), subject=f"s{number}", **fields)


def shown(client: Client) -> str:
    address = reverse("admin:django_identity_overview_changelist")
    return client.get(address).content.decode()


def test_it_shows_exactly_what_the_doctor_finds(admin_client):
    make_identities(1, refetch_due_at=LONG_AGO)
    make_identities(2, refetch_failures=1, last_error="service_timeout")
    make_identities(1, environment="live")
    linked = LinkedIdentity.objects.earliest("pk")
    make_event(linked, "claim.issued", outcome=EventOutcome.FAILED)
    make_event(linked, "kyc.verified", outcome="", received_at=LONG_AGO)
    ErasureReceipt.objects.create(requested_at=LONG_AGO)
    page = re.sub(r"<[^>]+>", "", shown(admin_client).replace("&#x27;", "'"))
    findings = list(of_rows())
    broken = {"due_rows", "failing", "environment", "events", "unapplied", "erasures"}
    assert broken <= {finding.check for finding in findings}
    for finding in findings:
        assert f"{finding.message} {finding.remedy}".strip() in page
    assert page.count("PROBLEM") == sum(each.level == "PROBLEM" for each in findings)
    assert "not healthy" in page
    # Each bar of a chart stands beside its label and its number; no style stands in the page.
    charted = shown(admin_client)

    assert re.search(r"granted · verified</th>\s*<td><svg .*?</svg></td>", charted)
    assert not re.search(r"<style| style=", charted)


def test_it_looks_again_after_a_minute(admin_client, monkeypatch):
    runs.begin()
    assert "Nothing needs an operator." in shown(admin_client)
    make_identities(1, refetch_failures=7)
    assert "refetches" not in shown(admin_client)
    [key] = [key.split(":")[-1] for key in cache._cache]
    cache.delete(key)
    assert "refetches" in shown(admin_client)
    assert overview.KEPT_SECONDS == 60


def test_people_are_counted_by_consent_and_status():
    make_identities(3)
    make_identities(5, kyc_level="level_1", kyc_status="unverified")
    make_identities(2, kyc_level="", kyc_status="")
    make_identities(1, kyc_level="", kyc_status="rejected")
    make_identities(1, consent=Consent.REVOKED, kyc_level="", kyc_status="")
    make_identities(4, environment="live")
    assert charts.people() == [
        ("granted", "verified", 3),
        ("granted", "unverified", 5),
        ("granted", "", 2),
        ("granted", "rejected", 1),
        ("revoked", "", 1),
    ]


def test_days_have_links_that_still_stand_and_revocations():
    now = timezone.now()
    for number, days in enumerate((1, 1, 29, 30)):
        made = make_identity(make_user(f"u{number}"), subject=f"s{number}")
        created = {"created_at": now - timedelta(days=days)}
        LinkedIdentity.objects.filter(pk=made.pk).update(**created)
    make_identity(make_user("gone"), subject="gone", consent=Consent.REVOKED)
    for kind, days in (
        ("consent.revoked", 0),
        ("consent.revoked", 40),
        ("kyc.verified", 0),
    ):
        make_event(made, kind, received_at=now - timedelta(days=days))
    found = charts.days()

    assert [each.linked for each in found] == [1, *[0] * 27, 2, 0]
    assert [each.revoked for each in found] == [0] * 29 + [1]
    assert found[-1].day == now.date()
