"""``KEEP_CLAIMS``: what is not in the list is verified and dropped at the door."""

from typing import Any

import pytest
from django.apps import apps
from django.core.exceptions import ImproperlyConfigured
from django.core.management import call_command
from django.test import Client
from django.utils import timezone

from django_identity import conf
from django_identity.gates import claim_required, claims_of
from django_identity.lifecycle import upkeep
from django_identity.models import LinkedIdentity, StoredClaim
from django_identity.testing.clock import moved_clock
from tests.factories import again, make_claim, make_identity, make_user
from tests.fake_service import FakeService
from tests.sign_in import sign_in
from tests.urls import urlpatterns

pytestmark = pytest.mark.django_db(transaction=True)

# Its gates are made before a test makes the list shorter.
assert urlpatterns

# With its quotes, which no sealed token has.
DROPPED = ("country_resident", "'NG'", "unique_human")


def keep(settings: Any, service: FakeService, *names: str) -> None:
    settings.DJANGO_IDENTITY = service.settings(KEEP_CLAIMS=list(names))


def everything_stored() -> str:
    models = apps.get_app_config("django_identity").get_models()
    return "\n".join(
        str(row) for model in models for row in model._base_manager.values()
    )


@pytest.fixture
def browser(service: FakeService, settings: Any) -> Client:
    service.disclosed = {
        "age_over_18": True, "country_resident": {"country": "NG"}, "unique_human": True,
    }  # fmt: skip
    keep(settings, service, "age_over_18")
    browser = Client()
    sign_in(browser)
    return browser


def test_a_sign_in_and_a_re_fetch_drop_the_others(browser: Client) -> None:
    user = LinkedIdentity.objects.get().user
    assert claims_of(user) == {"age_over_18": True}
    LinkedIdentity.objects.update(
        refetch_due_at=timezone.now(), credential_issued_at=None
    )
    upkeep.run()
    assert LinkedIdentity.objects.get().credential_issued_at is not None
    assert claims_of(again(user)) == {"age_over_18": True}
    assert not [text for text in DROPPED if text in everything_stored()]


def test_a_proven_claim_that_the_answer_does_not_list_is_dropped_too(
    service: FakeService, settings: Any
) -> None:
    """The credential discloses more than the list beside it names."""
    service.disclosed = {"age_over_18": True, "country_resident": {"country": "NG"}}
    answer: Any = service.good("claims")
    answer["data"]["claims"] = answer["data"]["claims"][:1]
    service.answers["claims"] = answer
    keep(settings, service, "age_over_18")
    sign_in(Client())
    user = LinkedIdentity.objects.get().user
    assert claims_of(user) == {"age_over_18": True}
    LinkedIdentity.objects.update(refetch_due_at=timezone.now())
    upkeep.run()
    assert claims_of(again(user)) == {"age_over_18": True}
    assert not [text for text in DROPPED if text in everything_stored()]


def test_a_shorter_list_drops_at_the_next_upkeep(
    service: FakeService, settings: Any
) -> None:
    identity = make_identity(make_user())
    make_claim(identity, "age_over_18")
    make_claim(identity, "country_resident", {"country": "NG"})
    keep(settings, service, "age_over_18")
    call_command("identity_upkeep")
    assert [row.claim_type for row in StoredClaim.objects.all()] == ["age_over_18"]


def test_what_a_shorter_list_drops_is_looked_for_once_an_hour(
    service: FakeService, settings: Any
) -> None:
    """It reads all claims, and few lists ever get shorter. Of two runs at once one does it."""
    identity = make_identity(make_user())
    keep(settings, service, "age_over_18")
    with moved_clock() as clock:
        for minutes, left in ((0, 0), (59, 1), (2, 0)):
            make_claim(identity, "country_resident", {"country": "NG"})
            clock.advance(minutes=minutes)
            call_command("identity_upkeep")
            assert StoredClaim.objects.count() == left
            StoredClaim.objects.all().delete()


def test_a_gate_for_a_dropped_claim_is_an_error(browser: Client) -> None:
    said = r"test_kept_claims.py, line \d+: KEEP_CLAIMS drops country_resident"
    with pytest.raises(ImproperlyConfigured, match=said):
        claim_required("age_over_18", "country_resident=NG")
    claim_required("age_over_18")


def test_the_account_page_says_what_is_kept(browser: Client) -> None:
    page = browser.get("/identity/account/").content.decode()
    assert "keeps only these" in page


@pytest.mark.parametrize("given", [[], "age_over_18", ["age_over_18=1"], [""], [7]])
def test_a_list_that_is_none(
    service: FakeService, settings: Any, given: object
) -> None:
    settings.DJANGO_IDENTITY = service.settings(KEEP_CLAIMS=given)
    assert [problem.check_id for problem in conf.problems()] == ["E004"]
