"""``verify_claims``: the service's verdict on a credential, which knows of revocations."""

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from django_identity import conf
from django_identity.exceptions import (
    ClientRejected,
    MalformedAnswer,
    ServiceRefusal,
    ServiceUnavailable,
)
from django_identity.models import LinkedIdentity
from django_identity.secrets import Secret
from django_identity.service import ServiceClient
from django_identity.testing.sandbox import RunningSandbox, SandboxPerson
from tests.factories import unsealed
from tests.fake_service import FakeService, answer, html, refusal

pytestmark = pytest.mark.django_db(transaction=True)


def test_the_client_reads_the_verdict(
    client: Client,
    identity_sign_in: Callable[..., Any],
    identity_sandbox: RunningSandbox,
    identity_person: SandboxPerson,
) -> None:
    """Valid; a revoked credential is not valid."""
    identity_sign_in(client)
    identity, service = LinkedIdentity.objects.get(), ServiceClient(conf.application())
    token = unsealed(identity, "access_token", identity.grant.access_token)
    credential = service.claims(identity.subject, access_token=Secret(token)).credential or ""
    assert service.verify_claims(credential) is True
    path = f"users/{identity_person.user_id}/claims/age_over_18/revoke"
    identity_sandbox.control("POST", path)
    assert service.verify_claims(credential) is False


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        (refusal("UNAUTHORIZED", status="401 No"), ClientRejected),
        (refusal("INVALID_REQUEST"), ServiceRefusal),
        ({"success": True, "data": {"valid": "true"}}, MalformedAnswer),
        (html(status="503 Busy"), ServiceUnavailable),
        (answer([]), ServiceUnavailable),
    ],
)
def test_a_bad_answer_is_no_verdict(service: FakeService, given: Any, kind: type) -> None:
    """A typed error, and one request: nothing is repeated."""
    service.answers["verify"] = given
    with pytest.raises(kind):
        ServiceClient(conf.application()).verify_claims("a~")
    assert len(service.requests) == 1
