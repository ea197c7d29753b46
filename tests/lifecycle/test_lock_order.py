"""Requests that end the links of one account at the same moment do not deadlock."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from django_identity.lifecycle import disconnecting, erasure
from django_identity.lifecycle.operators import interventions
from django_identity.models import LinkedIdentity
from tests.concurrency import at_once
from tests.databases import on_servers
from tests.factories import make_event, make_identity, make_user
from tests.views.connect.pages import LOCAL

pytestmark = [pytest.mark.django_db(transaction=True), on_servers]

ROUNDS = 10


@pytest.fixture(autouse=True)
def _applications(settings: Any) -> None:
    given = settings.DJANGO_IDENTITY["default"]
    settings.DJANGO_IDENTITY = {"default": given, "second": given, "third": given}


def linked() -> User:
    """An account with three links, each with an event."""
    user = make_user()
    for number, alias in enumerate(("default", "second", "third")):
        identity = make_identity(
            user, subject=f"subject-{number}", application=alias, account_made=False
        )
        make_event(identity, "kyc.verified")
    return user


def end(act: Callable[[LinkedIdentity], object]) -> None:
    """All links at once, each by a request of its own."""
    for _ in range(ROUNDS):
        identities = list(linked().linked_identities.order_by("-pk"))
        at_once([lambda each=each: act(each) for each in identities])
        User.objects.all().delete()


def test_two_revocations_at_once_do_not_deadlock() -> None:
    end(lambda identity: interventions.revoke([identity]))


def test_two_disconnections_at_once_do_not_deadlock() -> None:
    end(disconnecting.disconnect)


def test_deletions_by_the_site_at_once() -> None:
    end(lambda identity: identity.delete())


def test_an_erasure_beside_disconnections() -> None:
    """The first one wins; the others find nothing, or are refused."""
    for _ in range(ROUNDS):
        user = linked()
        identities = list(user.linked_identities.order_by("-pk"))
        disconnect = [
            lambda each=each: interventions.disconnect([each]) for each in identities
        ]
        at_once([lambda at=user: erasure.erase_account(at), *disconnect])
        assert not LinkedIdentity.objects.exists()
        User.objects.all().delete()


def test_signing_out_everywhere_beside_revocations() -> None:
    for _ in range(ROUNDS):
        user = linked()
        browser = Client()
        browser.force_login(user, backend=LOCAL)
        identities = list(user.linked_identities.order_by("-pk"))
        revoke = [lambda each=each: interventions.revoke([each]) for each in identities]
        address = reverse("identity:sign_out")
        sign_out = partial(browser.post, address, {"everywhere": "yes"})
        at_once([sign_out, *revoke])
        User.objects.all().delete()
