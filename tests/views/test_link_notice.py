"""The account's address is told of every new link, and no mail server keeps anybody out."""

import re
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core import mail
from django.core.mail.backends.locmem import EmailBackend
from django.test import Client, override_settings
from django.urls import reverse

from django_identity.lifecycle.operators import interventions
from django_identity.models import Consent, LinkedIdentity, RevokedBy
from django_identity.policy import IdentityPolicy
from tests.factories import make_identity, make_identity_by_code, make_user
from tests.sign_in import sign_in
from tests.views.connect.pages import hand_in

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_link_by_a_code_is_told(service, browser):
    hand_in(browser)
    (told,) = mail.outbox
    assert told.to == ["other@example.org"]
    assert told.subject == "Your account was connected"
    assert "Ada O., a***@example.org" in told.body
    assert "does not sign in" in told.body
    for secret in ("ada@", "Obi", "subject-1"):
        assert secret not in told.body
    hand_in(browser, "CNX-AB12-CD35")
    assert len(mail.outbox) == 1, "the same link is not new"
    sign_in(browser)
    sign_in(browser)
    _, linked, checked = mail.outbox
    # In the language of the request in which it happened.
    LinkedIdentity.objects.all().delete()
    with override_settings(LANGUAGE_CODE="fr"):
        hand_in(browser, "CNX-AB12-CD36")

    assert mail.outbox[-1].subject == "Votre compte a été relié"
    assert "can sign in to your account" in linked.body
    assert checked.subject == "Your details were checked again"


def test_a_link_names_the_site_and_leads_to_the_account(service, browser, client):
    address = "https://ajo.example/identity/callback/"
    with override_settings(DJANGO_IDENTITY=service.settings(REDIRECT_URI=address)):
        sign_in(browser)
        service.subject, service.profile = "another", {"email": "new@example.org"}
        sign_in(client)
    older, made = mail.outbox
    assert made.to == ["new@example.org"], "what the service knows"
    assert "to your account on this site.\n" in older.body
    for told in (older, made):
        assert re.search(r"^When: .* [A-Z]{3,4}$", told.body, re.MULTILINE)
        assert "https://ajo.example/identity/account/" in told.body
    assert "can sign in to your account" in older.body
    assert "disconnect it" in older.body
    assert "disconnect" not in made.body


def test_an_end_is_told(service, browser):
    address = "https://ajo.example/identity/callback/"
    with override_settings(DJANGO_IDENTITY=service.settings(REDIRECT_URI=address)):
        sign_in(browser)
        browser.post(reverse("identity:disconnect"))
        revoked_by_site = make_identity(User.objects.get())
        # An operator may press twice, or revoke a list in which somebody has ended it before.
        for _ in range(2):
            interventions.revoke([revoked_by_site])
    # What somebody has ended themselves is not called the site's deed.
    gone = make_identity(
        make_user("gone", email="gone@example.org"),
        subject="gone",
        consent=Consent.REVOKED,
        revoked_by=RevokedBy.PERSON,
    )
    interventions.revoke([gone])
    gone.refresh_from_db()
    assert gone.revoked_by == RevokedBy.PERSON
    _, disconnected, revoked = mail.outbox
    assert disconnected.subject == "Your account was disconnected"
    assert "no longer connected to your identity service" in disconnected.body
    assert revoked.to == ["other@example.org"]
    assert revoked.subject == "Your connection was ended"
    for told in (disconnected, revoked):
        assert re.search(r"^When: .* [A-Z]{3,4}$", told.body, re.MULTILINE)
        assert "https://ajo.example/identity/account/" in told.body

    assert "If this was not you" in disconnected.body
    assert "If this was not you" not in revoked.body
    assert "If you do not know why, ask them." in revoked.body


FORMER, NEW = "other@example.org", "ada@example.org"


@pytest.mark.parametrize("way", ["link", "renew", "sign in"])
def test_a_new_address_is_told_to_the_former_one_too(
    service,
    browser,
    user,
    updates,
    way,
):
    """Whoever has taken over an account must not be the only one to hear of it."""
    updates(lambda profile: {"email": profile.email})
    if way == "link":
        make_identity_by_code(user)
    else:
        make_identity(user)
    sign_in(Client() if way == "sign in" else browser)
    user.refresh_from_db()
    assert user.email == NEW
    told = {mail.to[0]: mail for mail in mail.outbox}
    assert told.keys() == {FORMER, NEW}
    subject = {
        "link": "Your account was connected",
        "renew": "Your details were checked again",
        "sign in": "The e-mail address of your account was changed",
    }[way]
    for each in told.values():
        assert each.subject == subject
        assert "was changed to the one that your identity service knows." in each.body
        assert "If this was not you" in each.body or "If it was not" in each.body

    assert NEW not in told[FORMER].body


def test_an_address_that_stays_is_not_told(service, browser, user, updates):
    """Nor one that is refused, nor the first one of an account."""
    updates(lambda profile: {"email": profile.email})
    make_identity(user)
    service.profile = {"email": FORMER}
    sign_in(Client())
    service.profile = {"email": "no address"}
    sign_in(Client())
    User.objects.update(email="")
    service.profile = {"email": NEW}
    sign_in(browser)
    (renewed,) = mail.outbox
    assert renewed.to == [NEW]
    assert "e-mail address" not in renewed.body


def test_nobody_is_told_of_a_refused_link_or_against_the_policy(
    service,
    browser,
    monkeypatch,
):
    """Nor without an address: the link is made all the same."""
    User.objects.update(is_staff=True)
    assert hand_in(browser).status_code == 403
    User.objects.update(is_staff=False, email="two\n@example.org")
    assert hand_in(browser, "CNX-AB12-CD35").status_code == 302
    User.objects.update(email="ada@example.org")
    LinkedIdentity.objects.all().delete()
    monkeypatch.setattr(IdentityPolicy, "notice", lambda *_args, **_context: None)
    assert hand_in(browser, "CNX-AB12-CD36").status_code == 302
    assert mail.outbox == []


def fail(*_args: Any, **_context: Any) -> None:
    raise ValueError("other@example.org")


@pytest.mark.parametrize(
    ("holder", "name"),
    [(EmailBackend, "send_messages"), (IdentityPolicy, "notice")],
)
def test_a_mail_that_does_not_go_out_keeps_nobody_out(
    service,
    client,
    caplog,
    monkeypatch,
    holder,
    name,
):
    monkeypatch.setattr(holder, name, fail)
    assert sign_in(client).status_code == 302
    assert client.get("/").content != b""
    assert "@example.org" not in caplog.text
    assert "identity.link_notice.failed" in caplog.text
