"""Admins that are not set up as Django's tutorial does it."""

import re

import pytest
from django.contrib import admin
from django.test import override_settings
from django.urls import path

from django_identity.models import ErasureReceipt, LinkedIdentity, WebhookEvent
from tests import urls
from tests.admin.operators import EVENT, IDENTITY, page, superuser
from tests.factories import make_event, make_identity, make_user

pytestmark = pytest.mark.django_db

staff = admin.AdminSite(name="staff")
for model in (LinkedIdentity, WebhookEvent, ErasureReceipt):
    staff.register(model, type(admin.site.get_model_admin(model)))
urlpatterns = [*urls.urlpatterns, path("staff/", staff.urls)]

HERE = "/staff/django_identity/"
THOUSAND = 1000


@pytest.fixture
def identity() -> LinkedIdentity:
    return make_identity(make_user("ada", email="ada@example.org"), pk=THOUSAND)


@override_settings(ROOT_URLCONF=__name__)
def test_a_second_admin_is_left_by_no_link(identity: LinkedIdentity) -> None:
    """Links and actions stay in the admin in which the operator is."""
    event = make_event(identity, "claim.issued")
    operator = superuser()
    own = f"linkedidentity/{identity.pk}/"
    for name in ("", "linkedidentity/", "linkedidentity/overview/", f"{own}change/",
                 f"{own}history/", "webhookevent/", "erasurereceipt/",
                 f"webhookevent/{event.pk}/change/"):  # fmt: skip
        text = operator.get(HERE + name).content.decode()
        assert "/staff/" in text
        assert not re.findall(r'(?:href|action)="(/admin/[^"]*)"', text), name
    chosen = {"_selected_action": identity.pk, "confirmed": "yes"}
    listed = f"{HERE}linkedidentity/"
    revoked = operator.post(listed, {"action": "revoke", **chosen})
    assert revoked["Location"] == listed
    assert operator.post(listed, {"action": "erase", **chosen})["Location"] == listed


@override_settings(USE_THOUSAND_SEPARATOR=True, LANGUAGE_CODE="de")
def test_the_buttons_of_a_page_name_its_row(identity: LinkedIdentity) -> None:
    """Also where a thousand is written ``1.000``."""
    event = make_event(identity, "claim.issued", pk=THOUSAND)
    operator = superuser()
    for name, row in ((IDENTITY, identity), (EVENT, event)):
        text = page(operator, name, row.pk)
        named = re.findall(r'name="_selected_action" value="([^"]*)"', text)
        assert set(named) == {str(THOUSAND)}, name
