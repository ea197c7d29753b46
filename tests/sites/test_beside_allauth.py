"""People who came by allauth, and what allauth keeps about them."""

import pytest

from tests.sites.running_site import RunningSite
from tests.sites.site_table import MEMBER, steps_of

pytestmark = steps_of("beside_allauth")
ROWS = """
from allauth.account.models import EmailAddress
from allauth.idp.oidc.models import Client, Token
from allauth.mfa.models import Authenticator
from allauth.socialaccount.models import SocialAccount
from django.contrib.auth.models import User
"""
ADD = ROWS + (
    "user = User.objects.get(username={name!r});"
    "EmailAddress.objects.create(user=user, email={email!r}, verified={verified});"
    "SocialAccount.objects.create(user=user, provider='other', uid={email!r});"
    "Token.objects.create(user=user, type='ia', hash={email!r},"
    " client=Client.objects.create(name='an app'), data={{'email': {email!r}}})"
)
COUNT = ROWS + (
    "print(EmailAddress.objects.filter(email={email!r}).count(),"
    "SocialAccount.objects.filter(uid={email!r}).count(),"
    "Token.objects.filter(hash={email!r}).count())"
)


def in_shell(site: RunningSite, code: str, **given: object) -> str:
    done = site.run("shell", "--no-imports", "-c", code.format(**given))
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize("verified", [True, False])
def test_a_verified_secondary_address_is_the_accounts(site, browser, person, verified):
    """A verified one is the account's: the person signs in there, and links."""
    in_shell(site, ADD, name=MEMBER, email=person.email, verified=verified)
    arrived = browser.sign_in(person)
    assert ("email_taken" in arrived.text) is verified
    if verified:
        assert "/accounts/login/" in arrived.text
        browser.sign_in_locally(MEMBER)
        browser.sign_in(person)
        assert browser.whoami["user"] == MEMBER
        browser.open("/identity/disconnect/")
        browser.submit(holding="csrfmiddlewaretoken")


def test_the_button_on_allauths_page_leads_on(site, browser, person):
    """To the page for which the person had to sign in, query and all."""
    assert "/accounts/login/" in str(browser.open("/members/?tab=2").url)
    browser.submit(to="/identity/login/")
    arrived = browser.approve(person)
    assert arrived.url.raw_path == b"/members/?tab=2"
    assert arrived.json()["claims"]["age_over_18"] is True


def test_an_erasure_takes_allauths_rows(site, browser, person):
    """Of an account that the identity made."""
    browser.sign_in(person)
    name = browser.whoami["user"]
    in_shell(site, ADD, name=name, email=person.email, verified=True)
    assert in_shell(site, COUNT, email=person.email) == "1 1 1"
    site.sandbox.request_deletion(person)
    site.settle()
    site.do_upkeep()
    assert in_shell(site, COUNT, email=person.email) == "0 0 0"


WAYS = ROWS + (
    "from django.test import override_settings\n"
    "from django_identity.allauth import AllauthPolicy\n"
    "user = User.objects.create(username={email!r})\n"
    "user.set_unusable_password()\n"
    "user.save()\n"
    "ways = lambda: AllauthPolicy().has_other_way_in(user)\n"
    "found = [ways()]\n"
    "EmailAddress.objects.create(user=user, email={email!r}, verified=True)\n"
    "found.append(ways())\n"
    "with override_settings(ACCOUNT_LOGIN_BY_CODE_ENABLED=True):\n"
    "    found.append(ways())\n"
    "SocialAccount.objects.create(user=user, provider='other', uid={email!r})\n"
    "found.append(ways())\n"
    "SocialAccount.objects.all().delete()\n"
    "key = Authenticator.objects.create(user=user, type='webauthn', data={{}})\n"
    "with override_settings(MFA_PASSKEY_LOGIN_ENABLED=True):\n"
    "    found.append(ways())\n"
    "    said = {{'clientExtensionResults': {{'credProps': {{'rk': True}}}}}}\n"
    "    key.data = {{'credential': said}}\n"
    "    key.save()\n"
    "    found.append(ways())\n"
    "user.set_password('a password')\n"
    "print(*found, ways())"
)


def test_each_of_allauths_ways_to_sign_in_is_recognised(site, person):
    """None, an address, a code by e-mail, a social account, a key, a passkey, a password."""
    assert (
        in_shell(site, WAYS, email=person.email)
        == "False False True True False True True"
    )
