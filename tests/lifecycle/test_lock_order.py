"""Requests and events about one person at the same moment do not deadlock."""

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
from tests.deliveries import event_body, post
from tests.factories import make_event, make_identity, make_user
from tests.views.connect.pages import LOCAL

pytestmark = [pytest.mark.django_db(transaction=True), on_servers]

ROUNDS = 10


def linked():
    """An account's link, with events."""
    identity = make_identity(make_user(), account_made=False)
    for _ in range(3):
        make_event(identity, "kyc.verified")
    return identity


def end(act):
    """The link three times at once, each by a request of its own."""
    for _ in range(ROUNDS):
        key = linked().pk
        rows = [LinkedIdentity.objects.get(pk=key) for _ in range(3)]
        at_once([lambda each=each: act(each) for each in rows])
        User.objects.all().delete()


def test_two_revocations_at_once_do_not_deadlock():
    end(lambda identity: interventions.revoke([identity]))


def test_two_disconnections_at_once_do_not_deadlock():
    end(disconnecting.disconnect)


def test_deletions_by_the_site_at_once():
    end(lambda identity: identity.delete())


def test_an_erasure_beside_disconnections():
    """The first one wins; the others find nothing."""
    for _ in range(ROUNDS):
        identity = linked()
        disconnect = partial(interventions.disconnect, [identity])
        at_once([partial(erasure.erase_account, identity.user), disconnect, disconnect])
        assert not LinkedIdentity.objects.exists()
        User.objects.all().delete()


def test_signing_out_everywhere_beside_revocations():
    for _ in range(ROUNDS):
        identity = linked()
        browser = Client()
        browser.force_login(identity.user, backend=LOCAL)
        revoke = partial(interventions.revoke, [identity])
        address = reverse("identity:sign_out")
        sign_out = partial(browser.post, address, {"everywhere": "yes"})
        at_once([sign_out, revoke, revoke])
        User.objects.all().delete()


@pytest.mark.parametrize(
    "event_types",
    [("consent.revoked", "data.deletion_requested", "kyc.rejected"), ("consent.revoked",) * 3],
    ids=["three", "one of them three times"],
)  # fmt: skip
def test_events_at_once_are_acknowledged(event_types):
    for number in range(ROUNDS):
        linked()
        bodies = [event_body(name, event_id=f"{name} {number}") for name in event_types]
        answers = at_once([partial(post, body) for body in bodies])
        assert [each.status_code for each in answers] == [200, 200, 200]
        User.objects.all().delete()
