"""Who may come in with a code without being signed in."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.http import HttpResponse
from django.test import Client, override_settings
from django.urls import reverse

from django_identity.models import LinkedIdentity
from django_identity.policy import IdentityPolicy
from tests.at_once import at_once
from tests.faces.connect.pages import hand_in, refused
from tests.hostile import HostileService
from tests.records import make_identity, make_user

pytestmark = pytest.mark.django_db(transaction=True)


class DoorOpen(IdentityPolicy):
    """Somebody who is not signed in may come in with a code."""

    connect_may_sign_in = True


def test_nobody_is_sent_to_sign_in(service: HostileService, client: Client) -> None:
    """Without a session nothing is sent, whatever the method."""
    for response in (client.get(reverse("identity:connect")), hand_in(client)):
        assert response["Location"] == "/accounts/login/?next=%2Fidentity%2Fconnect%2F"
    assert service.requests == []


def test_somebody_comes_in_with_a_code(service: HostileService, client: Client) -> None:
    """If the policy says so, a code signs up, and signs in the next time."""
    policy = "tests.faces.connect.test_coming_in.DoorOpen"
    with override_settings(DJANGO_IDENTITY={"default": service.settings(POLICY=policy)}):
        assert client.get(reverse("identity:connect")).status_code == 200
        hand_in(client)
        known = User.objects.get()
        assert known.email == "ada@example.org"
        assert client.get("/").content.decode() == known.username
        again = Client()
        hand_in(again, "CNX-AB12-CD35")
        assert again.get("/").content.decode() == known.username
        thief = Client()
        refused(hand_in(thief, "CNX-AB12-CD35"), "connect_code_used", 409)
        assert thief.get("/").content == b""
        LinkedIdentity.objects.update(consent="revoked")
        assert again.get("/").content == b""


def test_somebody_comes_in_twice_at_once(service: HostileService) -> None:
    """One redemption and one new user; the other submit learns that a code works once."""
    policy = "tests.faces.connect.test_coming_in.DoorOpen"
    settings = {"default": service.settings(POLICY=policy, TIMEOUT=5)}
    with override_settings(DJANGO_IDENTITY=settings):
        first, second = sorted(at_once([lambda: hand_in(Client())] * 2), key=status_of)
    assert first["Location"] == "/identity/connected/"
    assert "A code works once" in refused(second, "connect_code_used", 409)
    assert service.calls("request") == User.objects.count() == LinkedIdentity.objects.count() == 1


def status_of(response: HttpResponse) -> int:
    return response.status_code


def test_a_taken_address(service: HostileService, client: Client) -> None:
    """Accounts are never merged silently."""
    make_user(email="ADA@example.org")
    policy = "tests.faces.connect.test_coming_in.DoorOpen"
    with override_settings(DJANGO_IDENTITY={"default": service.settings(POLICY=policy)}):
        page = refused(hand_in(client), "email_taken", 403)
    assert "/accounts/login/?next=%2Fidentity%2Fconnect%2F" in page


def test_a_disabled_user_stays_out(service: HostileService, client: Client) -> None:
    """A disabled account is not opened by a code."""
    make_identity(make_user("ada", is_active=False))
    policy = "tests.faces.connect.test_coming_in.DoorOpen"
    with override_settings(DJANGO_IDENTITY={"default": service.settings(POLICY=policy)}):
        refused(hand_in(client), "user_inactive", 403)
    assert client.get("/").content == b""
