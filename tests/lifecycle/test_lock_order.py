"""Requests that end the link of one account at the same moment do not deadlock."""

from collections.abc import Callable
from functools import partial

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from django_identity.lifecycle.leaving import disconnecting, erasure
from django_identity.lifecycle.operators import interventions
from django_identity.models import LinkedIdentity
from tests.concurrency import at_once
from tests.databases import on_servers
from tests.factories import make_event, make_identity, make_user
from tests.views.connect.pages import LOCAL

pytestmark = [pytest.mark.django_db(transaction=True), on_servers]

ROUNDS = 10


def linked() -> LinkedIdentity:
    """An account's link, with events."""
    identity = make_identity(make_user(), account_made=False)
    for _ in range(3):
        make_event(identity, "kyc.verified")
    return identity


def end(act: Callable[[LinkedIdentity], object]) -> None:
    """The link three times at once, each by a request of its own."""
    for _ in range(ROUNDS):
        key = linked().pk
        rows = [LinkedIdentity.objects.get(pk=key) for _ in range(3)]
        at_once([lambda each=each: act(each) for each in rows])
        User.objects.all().delete()


def test_two_revocations_at_once_do_not_deadlock() -> None:
    end(lambda identity: interventions.revoke([identity]))


def test_two_disconnections_at_once_do_not_deadlock() -> None:
    end(disconnecting.disconnect)


def test_deletions_by_the_site_at_once() -> None:
    end(lambda identity: identity.delete())


def test_an_erasure_beside_disconnections() -> None:
    """The first one wins; the others find nothing."""
    for _ in range(ROUNDS):
        identity = linked()
        disconnect = partial(interventions.disconnect, [identity])
        at_once([partial(erasure.erase_account, identity.user), disconnect, disconnect])
        assert not LinkedIdentity.objects.exists()
        User.objects.all().delete()


def test_signing_out_everywhere_beside_revocations() -> None:
    for _ in range(ROUNDS):
        identity = linked()
        browser = Client()
        browser.force_login(identity.user, backend=LOCAL)
        revoke = partial(interventions.revoke, [identity])
        address = reverse("identity:sign_out")
        sign_out = partial(browser.post, address, {"everywhere": "yes"})
        at_once([sign_out, revoke, revoke])
        User.objects.all().delete()
