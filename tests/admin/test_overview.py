"""The overview: what the doctor finds in the rows, and two charts."""

import re
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.cache import cache
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from django_identity.admin import overview
from django_identity.instruments.signs import charts, of_rows
from django_identity.lifecycle.ground import runs
from django_identity.models import Consent, ErasureReceipt, EventOutcome, LinkedIdentity
from tests.factories import LONG_AGO, make_event, make_identity, make_user

pytestmark = pytest.mark.django_db


def make_identities(count: int, **fields: Any) -> None:
    first = User.objects.count()
    for number in range(first, first + count):
        make_identity(make_user(f"u{number}"), subject=f"s{number}", **fields)


def shown(client: Client) -> str:
    address = reverse("admin:django_identity_overview_changelist")
    return client.get(address).content.decode()


def test_it_shows_exactly_what_the_doctor_finds(admin_client):
    """Each finding with its level, name, message and remedy, and no other."""
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


def test_a_finding_leads_to_its_rows(admin_client):
    make_identities(1, refetch_failures=7, last_error="service_timeout")
    ErasureReceipt.objects.create(requested_at=LONG_AGO)
    make_event(
        LinkedIdentity.objects.get(), "claim.issued", outcome=EventOutcome.FAILED
    )
    page = shown(admin_client)
    rows = page[page.index("identity-findings") : page.index("identity-charts")]
    leading = re.findall(r'href="([^"]+)">(\w+)<', rows)
    assert {name for _address, name in leading} == {"refetches", "erasures", "events"}
    for address, _name in leading:
        assert "1 " in admin_client.get(address).content.decode()


def test_it_looks_again_after_a_minute(admin_client, monkeypatch):
    """Several operators have the page open."""
    runs.begin()
    assert "Nothing needs an operator." in shown(admin_client)
    make_identities(1, refetch_failures=7)
    assert "refetches" not in shown(admin_client)
    [key] = [key.split(":")[-1] for key in cache._cache]
    cache.delete(key)
    assert "refetches" in shown(admin_client)
    assert overview.KEPT_SECONDS == 60


def test_people_are_counted_by_consent_and_status():
    """Those of the settings' environment."""
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
    """Days without a row count nothing; a revoked link is no link."""
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
