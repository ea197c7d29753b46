"""openssl checks the signatures of the sandbox's events."""

import subprocess

import pytest

from tests.sandbox.driver import Application, Person
from tests.sandbox.receiver import SECRET, Receiver

pytestmark = pytest.mark.integration


def test_the_signature_is_openssls(application: Application, person: Person) -> None:
    """Lowercase hexadecimal HMAC-SHA-256 of the bytes as they came."""
    with Receiver() as receiver:
        application.receive_at(receiver.url, secret=SECRET)
        person.consent_to(application)
        receiver.wait_for(1)
    command = ["openssl", "dgst", "-sha256", "-hmac", SECRET]
    done = subprocess.run(command, input=receiver.requests[0].body, capture_output=True, check=True)
    signature = receiver.requests[0].headers["x-webhook-signature"]
    assert done.stdout.decode().split()[-1] == signature
