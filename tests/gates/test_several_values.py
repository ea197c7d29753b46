"""A claim with one of several values: at every face, and on the pages."""

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import path
from django.utils.translation import override

from django_identity.api.permissions import HasClaim
from django_identity.gates import (
    ClaimRequiredMixin,
    Gate,
    claim_required,
    claims_of,
    closed_to,
)
from django_identity.models import StoredClaim
from django_identity.texts.labels import heading_of
from tests.factories import again
from tests.gates.gated_views import (
    SECRET,
    Endpoint,
    Page,
    async_view,
    by_api,
    by_request,
    by_template,
    view,
)
from tests.urls import urlpatterns as other_patterns

pytestmark = [pytest.mark.django_db, pytest.mark.urls(__name__)]

ANY = "country_resident=GH|NG|PT"
# Over six: the page counts them, and names them where they are folded.
EUROPE = (
    "AT|BE|BG|HR|CY|CZ|DK|EE|FI|FR|DE|GR|HU|IE|IT|LV|LT|LU|MT|NL|PL|PT|RO|SK|SI|ES|SE"
)
european = claim_required(f"country_resident={EUROPE}")


class Neighbours(ClaimRequiredMixin, Page):
    required_claims = (ANY,)


urlpatterns = [
    path("europe/", european(view)),
    path("neighbours/", claim_required("country_resident=GH|PT|FR", on_closed="forbid")(view)),
    *other_patterns,
]  # fmt: skip
TAG = f'{{% identity_gate "{ANY}" %}}secret{{% end_identity_gate %}}'
FILTER = f'{{% if user|has_claim:"{ANY}" %}}secret{{% endif %}}'
WAYS = {
    "decorator": by_request(claim_required(ANY)(view)),
    "async decorator": by_request(claim_required(ANY)(async_view)),
    "mixin": by_request(Neighbours.as_view()),
    "permission": by_api(Endpoint.as_view(permission_classes=[HasClaim(ANY)])),
    "tag": by_template(TAG),
    "filter": by_template(FILTER),
    "question": lambda user: b"" if closed_to(Gate(ANY), user) else SECRET,
}


@pytest.mark.parametrize("name", WAYS)
def test_one_of_the_values_opens(user, name):
    """And no other value, nor a claim that is only true."""
    for value, opens in (("NG", True), ({"country": "PT"}, True), ("FR", False), (True, False),
                         ("GH|NG", False), ("", False), (None, False)):  # fmt: skip
        StoredClaim.objects.filter(claim_type="country_resident").update(value=value)
        assert (SECRET in WAYS[name](again(user))) is opens, value


def test_the_person_is_told_all_of_them(user):
    """In the problem's ``missing`` as the site wrote them, in its detail in words."""
    closed = closed_to(Gate("country_resident=PT|FR|ES"), user)
    assert closed is not None
    assert closed.missing == "country_resident"
    assert closed.problem()["missing"] == "country_resident=PT|FR|ES"
    with override("fr"):
        assert ": Portugal, France ou Espagne" in heading_of(closed.asked)
    assert claims_of(user)["country_resident"] == "NG"


def page_of(user: User | None, address: str) -> str:
    browser = Client()
    if user is not None:
        browser.force_login(user)
    return browser.get(address, follow=True).content.decode()


def test_a_few_are_named_and_many_are_counted(user):
    """The names of many are there, folded. Without a session, too."""
    few = page_of(user, "/neighbours/")
    assert "You need to live in Ghana, Portugal or France" in few
    assert "Show the countries" not in few
    for reader in (user, None):
        many = page_of(reader, "/europe/")
        assert "You need to live in one of 27 countries" in many
        assert "<li>Slovenia</li>" in many
    for language, words in (("ar", "أحد 27 بلدًا"), ("pt-br", "um de 27 países")):
        with override(language):
            assert words in heading_of(f"country_resident={EUROPE}")
