"""The calls of ``ServiceClient`` to the developer portal, against the sandbox."""

import httpx
import pytest

from django_identity import conf, exceptions
from django_identity.secrets import Secret
from django_identity.service import ServiceClient
from tests.fake_service import http
from tests.test_conf import configured

APP = "00000000-0000-4000-8000-000000000000"
WRONG = Secret("wrong-token")


@pytest.fixture
def registered(identity_sandbox):
    """An application at the sandbox, and the site's settings for it."""
    sandbox = identity_sandbox
    made = sandbox.control(
        "POST", "applications", redirect_uris=["http://testserver/back"]
    )
    addresses = {"BASE_URL": sandbox.base_url, "AUTH_URL": sandbox.auth_url}
    client = {
        name.upper(): made["test"][name] for name in ("client_id", "client_secret")
    }
    with configured(**addresses, **client):
        yield made


def is_accepted(sandbox, client, secret=""):
    """Whether the service knows the client by the secret: it answers 401, or a no to the code."""
    answer = httpx.post(
        f"{sandbox.base_url}/connect/request",
        json={"connect_code": "CNX-AAAA-0000", "scopes": ["kyc:status"]},
        auth=(client["client_id"], secret or client["client_secret"]),
        trust_env=False,
    )
    assert answer.status_code in (400, 401)
    return answer.status_code == 400


def rotate(app_id, token):
    client = ServiceClient(conf.application())
    return client.rotate_secret(app_id, mode="test", portal_token=token)


def make_user(app_id, token):
    return ServiceClient(conf.application()).create_test_user(
        app_id, portal_token=token
    )


def test_a_new_secret_voids_the_old_one(identity_sandbox, registered):
    """The answer names its client; the other mode keeps its secret."""
    rotated = rotate(registered["app_id"], Secret(identity_sandbox.portal_token))
    assert rotated.mode == "test"
    assert rotated.client_id == registered["test"]["client_id"]
    secret = rotated.client_secret.reveal()
    assert is_accepted(identity_sandbox, registered["test"], secret)
    assert not is_accepted(identity_sandbox, registered["test"])
    assert is_accepted(identity_sandbox, registered["live"])


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
        ask(APP, WRONG)
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
