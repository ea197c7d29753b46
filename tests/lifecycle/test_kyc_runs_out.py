"""A KYC level opens gates only as long as the service vouches for it."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.db.models import F
from django.test import override_settings
from django.utils import timezone

from django_identity import conf
from django_identity.lifecycle.standing import Reason, Shortfall, shortfall_of
from django_identity.lifecycle.tokens import access_token_for
from django_identity.lifecycle.upkeep import Refetched, refetch_these
from django_identity.models import LinkedIdentity
from tests.deliveries import deliver
from tests.factories import make_grant, make_identity, make_identity_by_code, make_user
from tests.fake_service import FakeService, answer, refusal, serving
from tests.lifecycle.refetching import all_refetched, refetched

pytestmark = pytest.mark.django_db(transaction=True)

HOUR = timedelta(hours=1)
DAY = timedelta(days=1)
ALL = ["profile:read", "kyc:read", "claims:read"]
REJECTED = answer({"success": False, "error": {"code": "x"}}, status="401 Unauthorized")


@pytest.fixture
def service() -> Iterator[FakeService]:
    secret = {"WEBHOOK_SECRETS": ["a-webhook-secret-for-tests-alone"]}
    with (
        serving() as running,
        override_settings(DJANGO_IDENTITY={"default": running.settings(**secret)}),
    ):
        yield running


def linked(*, checked: timedelta | None = timedelta(0), **fields: Any) -> LinkedIdentity:
    """Somebody of level 2 for whom the service vouched that long ago."""
    now = timezone.now()
    held = {
        "scopes": ALL,
        "refetch_due_at": now - timedelta(seconds=1),
        "kyc_said_at": None if checked is None else now - checked,
        **fields,
    }
    return make_identity(make_user(), **held)


def with_grant(identity: LinkedIdentity) -> LinkedIdentity:
    make_grant(identity)
    return LinkedIdentity.objects.get(pk=identity.pk)


def shortfall(identity: LinkedIdentity) -> Shortfall | None:
    return shortfall_of(reread(identity).user, "level_2")


def reread(identity: LinkedIdentity) -> LinkedIdentity:
    return LinkedIdentity.objects.get(pk=identity.pk)


# How long a level counts


def test_a_level_counts_for_two_days() -> None:
    """From the service's last word; then the gate says that it ran out, and when."""
    identity = linked(checked=48 * HOUR - timedelta(minutes=1))
    assert shortfall(identity) is None
    checked_at = timezone.now() - 48 * HOUR
    LinkedIdentity.objects.update(kyc_said_at=checked_at)
    assert shortfall(identity) == Shortfall(Reason.RUN_OUT, since=checked_at + 48 * HOUR)


def test_a_level_that_is_in_doubt_counts_no_more() -> None:
    """After a withdrawal the gate stays closed until the service has answered."""
    assert shortfall(linked(checked=None)) == Shortfall(Reason.RUN_OUT)


def test_a_level_by_code_alone_counts_for_a_month() -> None:
    """Nothing can ask for it again."""
    identity = make_identity_by_code(make_user(), kyc_said_at=timezone.now() - 30 * DAY + HOUR)
    assert shortfall(identity) is None
    LinkedIdentity.objects.update(kyc_said_at=timezone.now() - 30 * DAY)
    gone = shortfall(identity)
    assert gone is not None
    assert gone.reason is Reason.RUN_OUT


def test_the_site_sets_how_long_levels_count(service: FakeService) -> None:
    settings = service.settings(KYC_HOLDS=2 * HOUR)
    with override_settings(DJANGO_IDENTITY={"default": settings}):
        assert shortfall(linked(checked=HOUR)) is None
        LinkedIdentity.objects.update(kyc_said_at=timezone.now() - 2 * HOUR)
        assert shortfall(LinkedIdentity.objects.get()) is not None


@pytest.mark.parametrize("span", [48, "48h", timedelta(minutes=59), timedelta(days=400), None])
def test_a_span_that_cannot_be_meant_is_a_mistake(service: FakeService, span: object) -> None:
    with override_settings(DJANGO_IDENTITY={"default": service.settings(KYC_HOLDS=span)}):
        assert [problem.check_id for problem in conf.problems()] == ["E004"]


def test_a_dead_grant_vouches_for_nothing(service: FakeService) -> None:
    """The service's no to the refresh token closes the gate at once, whoever asked."""
    identity = with_grant(linked())
    identity.grant.access_expires_at = timezone.now()
    identity.grant.save()
    service.answers["token"] = answer({"error": "invalid_grant"}, status="400 Bad Request")
    assert shortfall(identity) is None
    with pytest.raises(Exception, match="refresh"):
        access_token_for(identity)
    assert shortfall(identity) == Shortfall(Reason.NOT_VERIFIED)


def test_a_grant_dies_together_with_its_level(
    service: FakeService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that ends in between leaves both, and the next caller meets the refusal again."""
    identity = with_grant(linked())
    identity.grant.access_expires_at = timezone.now()
    identity.grant.save()
    service.answers["token"] = answer({"error": "invalid_grant"}, status="400 Bad Request")

    def ended(*_given: Any, **_columns: Any) -> int:
        raise SystemExit

    monkeypatch.setattr("django_identity.models.querysets.LinkedIdentityQuerySet.change", ended)
    with pytest.raises(SystemExit):
        access_token_for(identity)
    identity.grant.refresh_from_db()
    assert not identity.grant.needs_reauthorization


# Upkeep


def test_the_first_refetch_after_a_day_asks_again(service: FakeService) -> None:
    identity = with_grant(linked(checked=23 * HOUR))
    assert refetched(identity) is Refetched.STORED
    assert service.calls("kyc") == 0
    LinkedIdentity.objects.update(kyc_said_at=timezone.now() - 24 * HOUR)
    assert list(refetch_these([identity.pk])) == [Refetched.STORED]
    assert (service.calls("kyc"), service.calls("token")) == (1, 0)
    checked_at = reread(identity).kyc_said_at
    assert checked_at is not None
    assert checked_at > timezone.now() - timedelta(minutes=1)


def test_doubt_is_settled_by_the_next_refetch(service: FakeService) -> None:
    """In either way: the answer opens the gate again, or says why it stays closed."""
    identity = with_grant(linked(checked=None))
    assert refetched(identity) is Refetched.STORED
    assert shortfall(identity) is None
    service.kyc = {"status": "rejected", "kyc_level": "level_1"}
    LinkedIdentity.objects.update(kyc_said_at=None)
    assert list(refetch_these([identity.pk])) == [Refetched.STORED]
    assert shortfall(identity) == Shortfall(Reason.NOT_VERIFIED)


def test_a_level_that_was_read_just_before_the_refusal_counts_no_more(service: FakeService) -> None:
    identity = with_grant(linked(checked=25 * HOUR))
    service.answers["claims"] = REJECTED
    assert refetched(identity) is Refetched.REAUTHORIZATION_NEEDED
    assert service.calls("kyc") == 1
    assert shortfall(identity) == Shortfall(Reason.NOT_VERIFIED)


@pytest.mark.parametrize("code", ["APP_SUSPENDED", "ENVIRONMENT_MISMATCH"])
@pytest.mark.parametrize("endpoint", ["kyc", "claims"])
def test_a_forbidden_answer_ends_no_grant(service: FakeService, endpoint: str, code: str) -> None:
    """The application may be suspended for an hour; that says nothing about the person."""
    identity = with_grant(linked(checked=25 * HOUR))
    service.answers[endpoint] = refusal(code, "403 Forbidden")
    assert refetched(identity) is Refetched.FAILED
    identity.grant.refresh_from_db()
    assert not identity.grant.needs_reauthorization
    assert identity.grant.refresh_token


def test_a_short_span_is_read_in_time(service: FakeService) -> None:
    """A site that lets levels count for six hours has them read well before."""
    settings = service.settings(KYC_HOLDS=6 * HOUR)
    with override_settings(DJANGO_IDENTITY={"default": settings}):
        identity = with_grant(linked(checked=4 * HOUR))
        assert refetched(identity) is Refetched.STORED
        assert service.calls("kyc") == 1
        due_at = reread(identity).refetch_due_at
    assert due_at is not None
    assert due_at < timezone.now() + 6 * HOUR


@pytest.mark.parametrize("digit", ["0", "7", "f"], ids=["first", "middle", "last"])
def test_without_claims_a_level_is_read_once_a_day(service: FakeService, digit: str) -> None:
    """Wherever the identity stands in the spread: when it is due, the level is read, once."""
    with_grant(linked(checked=DAY, scopes=["kyc:read"]))
    LinkedIdentity.objects.update(subject_digest=digit * 64)
    for calls in (1, 2):
        assert all_refetched() == [Refetched.STORED]
        assert service.calls("kyc") == calls
        due_at = LinkedIdentity.objects.get().refetch_due_at
        assert due_at is not None
        waits = due_at - timezone.now()
        assert DAY - HOUR < waits < 32 * HOUR
        LinkedIdentity.objects.update(
            refetch_due_at=F("refetch_due_at") - waits, kyc_said_at=F("kyc_said_at") - waits
        )


# Events


def test_another_claims_end_says_nothing_about_the_level(service: FakeService) -> None:
    identity = with_grant(linked(checked=HOUR))
    deliver("claim.revoked", subject="subject-1", claim_type="age_over_18")
    assert shortfall(identity) is None


def test_a_signed_event_vouches_for_a_level(service: FakeService) -> None:
    """It opens the gate at once, and the level is read anew all the same."""
    identity = with_grant(linked(checked=HOUR, kyc_level="level_1"))
    deliver("kyc.verified", subject="subject-1", status="verified", kyc_level="level_2")
    assert shortfall(identity) is None
    assert all_refetched() == [Refetched.STORED]
    assert service.calls("kyc") == 1
