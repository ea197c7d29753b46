"""A gate opens on the values of a claim in each form that the sandbox issues."""

import pytest
from django.contrib.auth.models import User
from django.urls import reverse

from django_identity.gates import claims_of

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize("form", ["object", "bare"])
def test_both_forms_open_the_same_gates(
    client, form, identity_sandbox, identity_sign_in
):
    """The same claims for the site's code, and the country on the person's page."""
    identity_sandbox.control("POST", "switches", claim_values=form)
    assert identity_sign_in(client).status_code == 302
    user = User.objects.get()
    assert claims_of(user) == {
        "kyc_verified": True, "age_over_18": True, "unique_human": True, "country_resident": "NG",
    }  # fmt: skip
    page = client.get(reverse("identity:account")).content.decode()
    assert '<bdi class="identity-value">Nigeria</bdi>' in page
    assert "your identity service says no" not in page
