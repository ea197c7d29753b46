"""``KEEP_CLAIMS``: what is not in the list is verified and dropped at the door."""

import pytest
from django.apps import apps
from django.core.checks import run_checks
from django.test import Client
from django.urls import path
from django.utils import timezone

from django_identity import conf
from django_identity.gates import claim_required, claims_of
from django_identity.lifecycle.minute import upkeep
from django_identity.models import LinkedIdentity, StoredClaim
from tests import urls as root_urls
from tests.factories import again
from tests.sign_in import sign_in

pytestmark = pytest.mark.django_db(transaction=True)

urlpatterns = [
    *root_urls.urlpatterns,
    path("resident/", claim_required("age_over_18", "country_resident=NG")(root_urls.home)),
]  # fmt: skip

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
        "age_over_18": True, "country_resident": {"country": "NG"}, "unique_human": True,
    }  # fmt: skip
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


@pytest.mark.parametrize("given", [[], "age_over_18", ["age_over_18=1"], [""], [7]])
def test_a_list_that_is_none(service, settings, given):
    settings.DJANGO_IDENTITY = service.settings(KEEP_CLAIMS=given)
    assert [problem.check_id for problem in conf.problems()] == ["E004"]
