"""Requests that end the link of one account at the same moment do not deadlock."""

from functools import partial

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from django_identity.lifecycle import erasure
from django_identity.lifecycle.operators import interventions
from django_identity.models import LinkedIdentity
from tests.concurrency import at_once
from tests.databases import on_servers
from tests.deliveries import deliver
from tests.factories import make_event, make_identity, make_user
from tests.views.connect.pages import LOCAL

pytestmark = [pytest.mark.django_db(transaction=True), on_servers]

ROUNDS = 10


def linked() -> LinkedIdentity:
    identity = make_identity(make_user(), account_made=False)
    make_event(identity, "kyc.verified")
    return identity


def test_an_erasure_beside_disconnections_and_deletions() -> None:
    """The first one wins; the others find nothing, or are refused."""
    for _ in range(ROUNDS):
        identity = linked()
        at_once(
            [
                partial(erasure.erase_account, identity.user),
                partial(interventions.disconnect, [identity]),
                LinkedIdentity.objects.get(pk=identity.pk).delete,
                partial(deliver, "data.deletion_requested"),
            ]
        )
        erasure.retry_pending()
        assert not LinkedIdentity.objects.exists()
        User.objects.all().delete()


def test_signing_out_everywhere_beside_revocations() -> None:
    for _ in range(ROUNDS):
        identity = linked()
        browser = Client()
        browser.force_login(identity.user, backend=LOCAL)
        address = reverse("identity:sign_out")
        sign_out = partial(browser.post, address, {"everywhere": "yes"})
        revoke = partial(interventions.revoke, [identity])
        at_once([sign_out, revoke, revoke, partial(deliver, "consent.revoked")])
        User.objects.all().delete()
