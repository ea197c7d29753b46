"""What Django mails to a site's operators when something fails shows no token and no person.

Each report has the variables of every frame, as an error tracker prints them, and those of the
causes that nobody sees.
"""

import pickle
import traceback
from datetime import timedelta

import pytest
from django.core.management import CommandError, call_command
from django.db import DatabaseError, OperationalError
from django.test import Client
from django.utils import timezone
from django.views.debug import ExceptionReporter

from django_identity import conf, flows, tasks
from django_identity.exceptions import (
    IdentityError,
    StorageUnavailable,
    UnexpectedError,
)
from django_identity.lifecycle.said import grants
from django_identity.models import LinkedIdentity
from django_identity.secrets import Secret
from django_identity.service import ServiceClient
from tests.deliveries import event_body, post, signed
from tests.factories import make_grant, make_identity, make_user
from tests.fake_service import answer, http
from tests.lifecycle.broken_statements import refused
from tests.sign_in import begin

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("as_in_production"),
]

HELD = "rt-that-is-held"
ACCESS = "at-that-is-held"
CLIENT_SECRET = "a-client-secret-for-tests-alone"
SENT = ("at-that-was-sent", "rt-that-was-sent")
OURS = "/django_identity/"
SECRETS = (HELD, *SENT)
GOOD = {"access_token": SENT[0], "refresh_token": SENT[1], "expires_in": 3600}


@pytest.fixture
def identity(service):
    past = timezone.now() - timedelta(minutes=1)
    made = make_identity(make_user(), refetch_due_at=past)
    make_grant(made, refresh_token=HELD, access_expires_at=past)
    return LinkedIdentity.objects.get(pk=made.pk)


def reported(error):
    """Django's page of every frame, and all variables of our frames, of each cause, too."""
    shown = []
    chain = []
    each = error
    while each is not None and each not in chain:
        chain.append(each)
        for frame, _line in traceback.walk_tb(each.__traceback__):
            if OURS in frame.f_code.co_filename:
                shown += [_printed(value) for value in frame.f_locals.values()]
        each = each.__cause__ or each.__context__
    # The first frame is the test's, which knows what the service sends.
    assert error.__traceback__ is not None
    error.__traceback__ = error.__traceback__.tb_next
    reporter = ExceptionReporter(None, type(error), error, error.__traceback__)
    shown += [reporter.get_traceback_html(), reporter.get_traceback_text()]
    return "".join(shown) + repr(chain)


def _printed(value):
    try:
        return repr(value)
    except DatabaseError as error:
        # A query that locks its rows, printed after its transaction ended.
        return type(error).__name__


def hides(error, *texts, log="", says=""):
    """The report and the ``log`` have none of these texts, and do say what it is about."""
    shown = reported(error) + log
    assert says in shown
    assert not [text for text in texts if text in shown]


def huge(held):
    held.sendall(
        b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + SENT[0].encode() * 30_000,
    )


@pytest.mark.parametrize(
    "bad",
    [
        answer({**GOOD, "error": "invalid_grant"}, status="400 Bad Request"),
        answer({**GOOD, "error": "invalid_request"}, status="400 Bad Request"),
        answer({**GOOD, "refresh_token": SENT[1] + " "}),
        answer({**GOOD, "user_id": "a", "sub": "b"}),
        answer({**GOOD, "user_id": "somebody-else"}),
        http(f"{SENT}".encode()),
        http(
            f"{SENT}".encode(),
            status="302 Found",
            headers=f"Location: /{SENT[0]}\r\n",
        ),
        http(f"{SENT}".encode(), status="429 Slow"),
        answer({"error": "server_error"}, status="503 Service Unavailable"),
        lambda held: held.close(),
        huge,
    ],
    ids=[
        "invalid_grant",
        "refused",
        "shape",
        "two subjects",
        "subject",
        "not json",
        "redirect",
        "429",
        "503",
        "closed",
        "huge",
    ],
)
def test_a_refresh_that_fails_shows_no_token(service, identity, bad):
    """Neither the one that was presented nor those in the answer that was not taken.

    Not on the page, and not in the pickle that Celery makes of what a task raises.
    """
    service.answers["token"] = bad
    with pytest.raises(IdentityError) as caught:
        flows.access_token_for(identity)
    name = type(caught.value).__name__
    hides(caught.value, *SECRETS, CLIENT_SECRET, says=name)
    pickled = pickle.dumps(caught.value)
    arrived = pickle.loads(pickled)
    assert type(arrived) is type(caught.value)
    assert str(arrived) == str(caught.value)
    assert not [secret for secret in SECRETS if secret.encode() in pickled]


@pytest.mark.parametrize(
    "bad",
    [
        lambda held: held.close(),
        answer({"error": "server_error"}, status="503 Service Unavailable"),
        http(b"subject-1", status="302 Found", headers="Location: /subject-1\r\n"),
        answer({"success": True, "data": {"user_id": "subject-2", "claims": []}}),
        answer(
            {
                "success": True,
                "data": {"user_id": "subject-1", "claims": 7, "status": 7},
            },
        ),
        answer(
            {"success": False, "error": {"code": "NO"}, "for": "subject-1"},
            status="400 Bad",
        ),
    ],
    ids=["closed", "503", "redirect", "another subject", "shape", "refused"],
)
@pytest.mark.parametrize("endpoint", ["claims", "kyc"])
def test_a_read_that_fails_shows_no_token_and_no_person(service, bad, endpoint):
    """Whatever prints the variables."""
    service.answers[endpoint] = bad
    read = getattr(ServiceClient(conf.application()), endpoint)
    with pytest.raises(IdentityError) as caught:
        read("subject-1", access_token=Secret(ACCESS))
    hides(caught.value, ACCESS, "subject-1")


@pytest.mark.parametrize("kind", [DatabaseError, OperationalError, RuntimeError])
def test_a_database_that_fails_shows_no_token(service, identity, kind, monkeypatch):
    """The moment in which the new tokens are in hand and cannot be stored."""
    monkeypatch.setattr(grants, "STORED_WITHIN", 0.0)
    service.answers["token"] = GOOD
    lost = refused("UPDATE", error=kind, after=1)
    with lost, pytest.raises((UnexpectedError, StorageUnavailable)) as caught:
        flows.access_token_for(identity)
    hides(caught.value, *SECRETS, says=kind.__name__)


@pytest.mark.parametrize("statement", ["UPDATE", "INSERT"])
@pytest.mark.parametrize(
    "work",
    [
        lambda one: call_command("identity_refetch", one.pk),
        lambda _: tasks.refetch_due(20),
    ],
    ids=["command", "task"],
)
def test_a_refetch_that_cannot_be_stored_shows_no_credential(
    service,
    identity,
    caplog,
    work,
    statement,
):
    """Nor the tokens with which it was read. A task as a command."""
    credential = service.credential()
    service.bend = lambda _another: credential
    service.answers["token"] = GOOD
    # An UPDATE takes the lease, the next one stores the tokens.
    number = 2 if statement == "UPDATE" else 0
    shown = ""
    with refused(statement, error=RuntimeError, after=number):
        try:
            work(identity)
        except (CommandError, UnexpectedError) as error:
            shown = reported(error)
    shown += caplog.text
    assert "RuntimeError" in shown
    secrets = (*SECRETS, credential, *credential.split("~")[:-1])

    assert not [secret for secret in secrets if secret in shown]


@pytest.mark.parametrize("statement", ["INSERT", "SELECT", "UPDATE"])
def test_an_event_that_fails_shows_nothing_of_its_body(caplog, statement):
    """A bug of ours, or of a receiver of Django's own signals."""
    make_identity(make_user())
    body = event_body("claim.revoked", provider="a-provider")
    with refused(statement, error=RuntimeError):
        assert post(body).status_code == 500
        with pytest.raises(UnexpectedError) as caught:
            flows.receive_event(body, signature=signed(body))
    texts = ("subject-1", "a-provider")
    hides(caught.value, *texts, log=caplog.text, says="RuntimeError")


def test_a_sign_in_that_fails_shows_nobody(service, caplog):
    """At each statement with which it stores what came: neither person, nor code, nor token."""
    service.answers["token"] = GOOD
    for number in range(1, 4):
        browser = Client()
        state = begin(browser)
        callback = flows.Callback.parse(state=[state], code=["a-code"], error=[])
        [key] = [
            each.value for each in browser.cookies.values() if "browser" in each.key
        ]
        broken = refused("UPDATE", error=RuntimeError, after=number)
        with broken, pytest.raises(UnexpectedError) as caught:
            flows.complete_sign_in(callback, browser_key=key, user=None)
        texts = (*SECRETS, "subject-1", "ada@example.org", "a-code", state, key)
        hides(caught.value, *texts, log=caplog.text, says="RuntimeError")
