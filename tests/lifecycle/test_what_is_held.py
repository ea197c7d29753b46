"""What is held of a person: a KYC level for as long as the service vouches for it, kept claims."""

from datetime import timedelta

import pytest
from django.apps import apps
from django.contrib.auth.models import User
from django.core.checks import run_checks
from django.db.models import F
from django.test import Client, override_settings
from django.urls import path
from django.utils import timezone

from django_identity import conf
from django_identity.exceptions import ReauthorizationNeeded
from django_identity.gates import claim_required, claims_of
from django_identity.lifecycle.minute import upkeep
from django_identity.lifecycle.minute.upkeep import Refetched
from django_identity.lifecycle.said.tokens import access_token_for
from django_identity.lifecycle.standing.standing import standing_of
from django_identity.models import LinkedIdentity, StoredClaim, TokenGrant, WebhookEvent
from django_identity.reasons import Reason, Shortfall
from tests import urls as root_urls
from tests.deliveries import deliver
from tests.factories import (
    again,
    make_grant,
    make_identity,
    make_identity_by_code,
    make_user,
)
from tests.fake_service import INVALID_GRANT, REJECTED, refusal
from tests.lifecycle.refetches import all_refetched, refetched
from tests.sign_in import sign_in

pytestmark = pytest.mark.django_db(transaction=True)

MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)
UNREAD = Shortfall(Reason.UNREAD)


def linked(*, checked=timedelta(0), **fields):
    """Somebody of level 2 who is due, and for whom the service vouched that long ago."""
    now = timezone.now()
    held = {
        "scopes": ["profile:read", "kyc:read", "claims:read"],
        "refetch_due_at": now - timedelta(seconds=1),
        "kyc_said_at": None if checked is None else now - checked,
        **fields,
    }
    make_grant(make_identity(make_user(), **held))
    return LinkedIdentity.objects.get()


def shortfall():
    return standing_of(User.objects.get()).level_shortfall("level_2")


# How long a level counts


@pytest.mark.parametrize(
    ("make", "setting", "holds"),
    [
        (linked, {}, 48 * HOUR),
        (linked, {"KYC_HOLDS": 2 * HOUR}, 2 * HOUR),
        # Nothing can ask for it again.
        (lambda: make_identity_by_code(make_user()), {}, 30 * DAY),
    ],
    ids=["two days", "as the site says", "a month by code alone"],
)
def test_a_level_counts_for_a_while(service, make, setting, holds):
    """From the service's last word; then the gate says that it ran out, and when."""
    with override_settings(DJANGO_IDENTITY=service.settings(**setting)):
        make()
        said_at = timezone.now() - holds
        LinkedIdentity.objects.update(kyc_said_at=said_at + HOUR)
        assert shortfall() is None
        LinkedIdentity.objects.update(kyc_said_at=said_at)
        assert shortfall() == Shortfall(Reason.RUN_OUT, since=said_at + holds)


MISTAKES = [
    *(("KYC_HOLDS", span) for span in (48, "48h", 59 * MINUTE, 400 * DAY, None)),
    *(
        ("KEEP_CLAIMS", names)
        for names in ([], "age_over_18", ["age_over_18=1"], [""], [7])
    ),
]


@pytest.mark.parametrize(("name", "given"), MISTAKES, ids=str)
def test_what_cannot_be_meant_is_a_mistake(service, name, given):
    with override_settings(DJANGO_IDENTITY=service.settings(**{name: given})):
        assert [problem.check_id for problem in conf.problems()] == ["E004"]


@pytest.fixture
def dead(service):
    """Somebody whose refresh token the service will refuse."""
    service.answers["token"] = INVALID_GRANT
    identity = linked()
    TokenGrant.objects.update(access_expires_at=timezone.now())
    return identity


@pytest.mark.parametrize("ago", [timedelta(), 2 * HOUR], ids=["newer", "older"])
def test_an_event_does_not_bring_back_the_level_of_a_dead_grant(dead, ago):
    """The service's no to the refresh token closes the gate at once, whoever asked.

    The event may be older, and nothing can be asked of the service. A rejection counts.
    """
    LinkedIdentity.objects.update(signed_in_at=timezone.now() - DAY)
    assert shortfall() is None
    with pytest.raises(ReauthorizationNeeded):
        access_token_for(dead)
    assert shortfall() == UNREAD
    deliver("kyc.verified", at=timezone.now() - ago, kyc_level="level_2")
    assert shortfall() == UNREAD
    assert all_refetched() == [Refetched.REAUTHORIZATION_NEEDED]
    assert shortfall() == UNREAD
    deliver("kyc.rejected")
    assert shortfall() == Shortfall(Reason.REJECTED)
    deliver("kyc.verified", kyc_level="level_2")
    assert shortfall() == Shortfall(Reason.REJECTED)


def test_a_grant_dies_together_with_its_level(dead, monkeypatch):
    """A process that ends in between leaves both, and the next caller meets the refusal again."""

    def ended(*_given, **_columns):
        raise SystemExit

    monkeypatch.setattr(
        "django_identity.models.querysets.LinkedIdentityQuerySet.change",
        ended,
    )
    with pytest.raises(SystemExit):
        access_token_for(dead)
    assert not TokenGrant.objects.get().needs_reauthorization


# Upkeep


@pytest.mark.parametrize("checked", [None, -300 * DAY], ids=["never", "in the future"])
def test_doubt_is_settled_by_the_next_refetch(service, checked):
    """In either way: the answer opens the gate again, or says why it stays closed."""
    identity = linked(checked=checked)
    assert shortfall() == Shortfall(Reason.RUN_OUT)
    assert refetched(identity) is Refetched.STORED
    assert shortfall() is None
    service.kyc = {"status": "rejected", "kyc_level": "level_1"}
    LinkedIdentity.objects.update(kyc_said_at=None)
    assert refetched(identity) is Refetched.STORED
    assert shortfall() == Shortfall(Reason.REJECTED)


def test_the_first_refetch_after_a_day_asks_again(service):
    """A site that lets levels count for six hours has them read well before."""
    identity = linked(checked=23 * HOUR)
    for calls in (0, 1):
        assert refetched(identity) is Refetched.STORED
        assert service.calls("kyc") == calls
        assert service.calls("token") == 0
        LinkedIdentity.objects.update(kyc_said_at=timezone.now() - 24 * HOUR)
    LinkedIdentity.objects.update(kyc_said_at=timezone.now() - 4 * HOUR)
    with override_settings(DJANGO_IDENTITY=service.settings(KYC_HOLDS=6 * HOUR)):
        assert refetched(identity) is Refetched.STORED
    assert service.calls("kyc") == 2
    assert LinkedIdentity.objects.get().refetch_due_at < timezone.now() + 6 * HOUR


def test_a_level_that_was_read_just_before_the_refusal_counts_no_more(service):
    """The token is refused before its time: one refresh, and one more try."""
    service.answers["claims"] = REJECTED
    assert refetched(linked(checked=25 * HOUR)) is Refetched.REAUTHORIZATION_NEEDED
    calls = [service.calls(name) for name in ("kyc", "token", "claims")]
    assert calls == [1, 1, 2]
    assert shortfall() == UNREAD


@pytest.mark.parametrize("code", ["APP_SUSPENDED", "ENVIRONMENT_MISMATCH"])
@pytest.mark.parametrize("endpoint", ["kyc", "claims"])
def test_a_forbidden_answer_ends_no_grant(service, endpoint, code):
    """The application may be suspended for an hour; that says nothing about the person."""
    service.answers[endpoint] = refusal(code, "403 Forbidden")
    result = Refetched.FAILED if endpoint == "claims" else Refetched.LEVEL_UNREAD
    assert refetched(linked(checked=25 * HOUR)) is result
    grant = TokenGrant.objects.get()
    assert not grant.needs_reauthorization
    assert grant.refresh_token


@pytest.mark.parametrize("digit", ["0", "7", "f"], ids=["first", "middle", "last"])
def test_without_claims_a_level_is_read_once_a_day(service, digit):
    """Wherever the identity stands in the spread: when it is due, the level is read, once."""
    linked(checked=DAY, scopes=["kyc:read"])
    LinkedIdentity.objects.update(subject_digest=digit * 64)
    for calls in (1, 2):
        assert all_refetched() == [Refetched.STORED]
        assert service.calls("kyc") == calls
        waits = LinkedIdentity.objects.get().refetch_due_at - timezone.now()
        assert DAY - HOUR < waits < 32 * HOUR
        LinkedIdentity.objects.update(
            refetch_due_at=F("refetch_due_at") - waits,
            kyc_said_at=F("kyc_said_at") - waits,
        )


# Events


@pytest.mark.parametrize("behind", [0, 60])
def test_a_verification_on_another_machine_of_the_site_is_read(service, behind):
    """Its clock is a little behind that of the machine that has just asked the service."""
    linked(kyc_status="unverified", kyc_level="")
    deliver("kyc.verified")
    lately = timezone.now() - timedelta(seconds=behind)
    WebhookEvent.objects.update(received_at=lately)
    assert refetched(LinkedIdentity.objects.get()) is Refetched.STORED
    assert service.calls("kyc") == 1


# ``KEEP_CLAIMS``: what is not in the list is verified and dropped at the door


urlpatterns = [
    *root_urls.urlpatterns,
    path(
        "resident/",
        claim_required("age_over_18", "country_resident=NG")(root_urls.home),
    ),
]

# With its quotes, which no sealed token has.
DROPPED = ("country_resident", "'NG'", "unique_human")


@pytest.fixture
def keep(settings):
    """``keep("age_over_18")``: the site keeps these claims."""

    def kept(*names):
        given = {**settings.DJANGO_IDENTITY, "KEEP_CLAIMS": list(names)}
        settings.DJANGO_IDENTITY = given

    return kept


def everything_stored():
    models = apps.get_app_config("django_identity").get_models()
    return "\n".join(
        str(row) for model in models for row in model._base_manager.values()
    )


@pytest.mark.parametrize("listed", [3, 1], ids=["all", "the first"])
def test_a_sign_in_and_a_re_fetch_drop_the_others(service, keep, listed):
    """Those that the credential discloses, whatever the list beside it names.

    A shorter list drops at the next re-fetch, and a longer one stores.
    """
    service.disclosed = {
        "age_over_18": True,
        "country_resident": {"country": "NG"},
        "unique_human": True,
    }
    answer = service.good("claims")
    answer["data"]["claims"] = answer["data"]["claims"][:listed]
    service.answers["claims"] = answer
    keep("age_over_18")
    browser = Client()
    sign_in(browser)
    user = LinkedIdentity.objects.get().user
    assert claims_of(user) == {"age_over_18": True}
    assert not [text for text in DROPPED if text in everything_stored()]
    page = browser.get("/identity/account/").content.decode()
    assert "keeps only these" in page

    for names in (["age_over_18"], ["unique_human"], ["unique_human", "age_over_18"]):
        keep(*names)
        LinkedIdentity.objects.update(refetch_due_at=timezone.now())
        upkeep.run()
        assert set(claims_of(again(user))) == {*names}
        assert {row.claim_type for row in StoredClaim.objects.all()} == {*names}
        assert "country_resident" not in everything_stored()


@pytest.mark.urls(__name__)
def test_a_gate_for_a_dropped_claim_is_an_error(service, keep):
    """It says where, and which claims. A gate for what is kept is none."""
    keep("age_over_18")
    said = "/resident/ asks for country_resident, which KEEP_CLAIMS"
    assert len([each for each in run_checks() if said in each.msg]) == 1
    keep("age_over_18", "country_resident")
    assert not [each for each in run_checks() if "/resident/" in each.msg]
