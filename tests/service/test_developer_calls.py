"""The calls of ``ServiceClient`` to the developer portal, against the sandbox."""

import pytest
from django.conf import settings
from django.test import override_settings

from django_identity import conf, exceptions
from django_identity.secrets import Secret
from django_identity.service import ServiceClient
from tests.fake_service import http
from tests.test_conf import configured

APP = "00000000-0000-4000-8000-000000000000"


@pytest.fixture
def registered(identity_sandbox):
    """An application at the sandbox, and the site's settings for it."""
    asked = {"redirect_uris": ["http://testserver/back"]}
    made = identity_sandbox.control("POST", "applications", **asked)
    addresses = {
        "BASE_URL": identity_sandbox.base_url,
        "AUTH_URL": identity_sandbox.auth_url,
        "CLIENT_ID": made["test"]["client_id"],
        "CLIENT_SECRET": made["test"]["client_secret"],
    }
    with configured(**addresses):
        yield made


def rotate(app_id, token):
    client = ServiceClient(conf.application())
    return client.rotate_secret(app_id, mode="test", portal_token=token)


def make_user(app_id, token):
    client = ServiceClient(conf.application())
    return client.create_test_user(app_id, portal_token=token)


def test_a_new_secret_voids_the_old_one(identity_sandbox, registered):
    """The answer names its client."""
    rotated = rotate(registered["app_id"], Secret(identity_sandbox.portal_token))
    assert rotated.mode == "test"
    assert rotated.client_id == registered["test"]["client_id"]

    for secret, error in (
        (registered["test"]["client_secret"], exceptions.ClientRejected),
        (rotated.client_secret.reveal(), exceptions.InvalidConnectCode),
    ):
        application = {**settings.DJANGO_IDENTITY, "CLIENT_SECRET": secret}
        with override_settings(DJANGO_IDENTITY=application):
            client = ServiceClient(conf.application())
        with pytest.raises(error):
            client.redeem_connect_code("CNX-AAAA-0000", ["kyc:status"])


def test_the_service_knows_the_test_user(identity_sandbox, registered):
    made = make_user(registered["app_id"], Secret(identity_sandbox.portal_token))
    shown = identity_sandbox.control("GET", f"users/{made.user_id}")
    assert (shown["email"], shown["environment"]) == (made.email, "test")
    assert made.password.reveal()


@pytest.mark.parametrize("ask", [rotate, make_user])
@pytest.mark.usefixtures("registered")
def test_a_refusal_of_the_portal_has_a_code(identity_sandbox, ask):
    """A wrong token, and an application that is not there."""
    with pytest.raises(exceptions.AccessTokenRejected):
        ask(APP, Secret("wrong-token"))
    with pytest.raises(exceptions.ServiceRefusal):
        ask(APP, Secret(identity_sandbox.portal_token))


@pytest.mark.parametrize(
    "answer",
    [http(b"oops", status="500 Oops"), http(b'{"success": true, "data": {"mode": "test"}}')],
)  # fmt: skip
def test_an_unclear_answer_may_have_changed_the_secret(service, answer):
    """The error says so; it is sent once."""
    service.answers["rotate-secret"] = answer
    with pytest.raises(exceptions.ServiceError) as raised:
        rotate(APP, Secret("a-token"))
    assert raised.value.may_have_arrived
    assert not isinstance(raised.value, exceptions.ServiceRefusal)
    assert service.calls("rotate-secret") == 1
