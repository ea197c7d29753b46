"""The calls of ``ServiceClient`` to the developer portal, against the sandbox."""

import pytest

from django_identity import conf, exceptions
from django_identity.secrets import Secret
from django_identity.service import ServiceClient
from tests.test_conf import configured


def addresses(sandbox):
    return {"BASE_URL": sandbox.base_url, "AUTH_URL": sandbox.auth_url}


@pytest.fixture
def registered(identity_sandbox):
    """An application at the sandbox, and the site's settings for it."""
    asked = {"redirect_uris": ["http://testserver/back"]}
    made = identity_sandbox.control("POST", "applications", **asked)
    client = {
        name.upper(): made["test"][name] for name in ("client_id", "client_secret")
    }
    with configured(**addresses(identity_sandbox), **client):
        yield made


def test_the_sandbox_is_understood(identity_sandbox, registered):
    """A new secret names its client, and voids the old one. The service knows the test user."""
    portal = {"portal_token": Secret(identity_sandbox.portal_token)}
    client = ServiceClient(conf.application())
    made = client.create_test_user(registered["app_id"], **portal)
    rotated = client.rotate_secret(registered["app_id"], mode="test", **portal)

    assert (rotated.mode, rotated.client_id) == (
        "test",
        registered["test"]["client_id"],
    )
    shown = identity_sandbox.control("GET", f"users/{made.user_id}")
    assert (shown["email"], shown["environment"]) == (made.email, "test")
    assert made.password.reveal()
    code = ("CNX-AAAA-0000", ["kyc:status"])
    with pytest.raises(exceptions.ClientRejected):
        client.redeem_connect_code(*code)
    with configured(**addresses(identity_sandbox), CLIENT_ID=rotated.client_id,
                    CLIENT_SECRET=rotated.client_secret.reveal()):  # fmt: skip
        client = ServiceClient(conf.application())
    with pytest.raises(exceptions.InvalidConnectCode):
        client.redeem_connect_code(*code)
