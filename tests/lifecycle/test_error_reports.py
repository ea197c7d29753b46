"""What Django mails to a site's operators when something fails shows no token and no credential."""

import pickle
import traceback
from datetime import timedelta

import pytest
from django.db import DatabaseError, connection
from django.utils import timezone
from django.views.debug import ExceptionReporter

from django_identity import conf
from django_identity.exceptions import IdentityError, UnexpectedError
from django_identity.lifecycle.minute import refetch
from django_identity.lifecycle.said import events, tokens
from django_identity.models import LinkedIdentity
from django_identity.secrets import Secret
from django_identity.service import ServiceClient
from tests.deliveries import event_body, post, signed
from tests.factories import make_grant, make_identity, make_user
from tests.fake_service import answer, http

pytestmark = pytest.mark.django_db(transaction=True)

HELD = "rt-that-is-held"
ACCESS = "at-that-is-held"
CLIENT_SECRET = "a-client-secret-for-tests-alone"
SENT = ("at-that-was-sent", "rt-that-was-sent")
OURS = "/django_identity/"
GOOD = {"access_token": SENT[0], "refresh_token": SENT[1], "expires_in": 3600}


@pytest.fixture
def identity(service):
    past = timezone.now() - timedelta(minutes=1)
    made = make_identity(make_user(), refetch_due_at=past)
    make_grant(made, refresh_token=HELD, access_expires_at=past)
    return LinkedIdentity.objects.get(pk=made.pk)


def reported(error):
    """The page of every frame with its variables, as for a request that failed."""
    assert error.__traceback__ is not None
    # The first frame is the test's, which knows what the service sends.
    error.__traceback__ = error.__traceback__.tb_next
    reporter = ExceptionReporter(None, type(error), error, error.__traceback__)
    ours = [
        frame for frame in reporter.get_traceback_frames() if OURS in frame["filename"]
    ]
    assert ours
    return reporter.get_traceback_html() + reporter.get_traceback_text()


def collected(error):
    """The variables of our frames as an error tracker prints them that knows nothing of Django."""
    frames = (frame for frame, _line in traceback.walk_tb(error.__traceback__))
    ours = [frame for frame in frames if OURS in frame.f_code.co_filename]
    assert ours
    return "".join(
        _printed(value) for frame in ours for value in frame.f_locals.values()
    )


def _printed(value):
    try:
        return repr(value)
    except DatabaseError as error:
        # A query that locks its rows, printed after its transaction ended.
        return type(error).__name__


def sent_home(error):
    """What Celery's worker writes to its parent, who can read it."""
    pickled = pickle.dumps(error)
    arrived = pickle.loads(pickled)
    assert (type(arrived), str(arrived)) == (type(error), str(error))
    return pickled


def fails_at(statement, number, kind=DatabaseError):
    """A database that takes ``number`` such statements and loses the next one."""
    taken: list[str] = []

    def execute(run, sql, *rest):
        if sql.startswith(statement):
            taken.append(sql)
            if len(taken) > number:
                raise kind("gone")
        return run(sql, *rest)

    return execute


def huge(held):
    held.sendall(
        b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + SENT[0].encode() * 30_000
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
        http(f"{SENT}".encode(), status="302 Found", headers=f"Location: /{SENT[0]}\r\n"),
        http(f"{SENT}".encode(), status="429 Slow"),
        answer({"error": "server_error"}, status="503 Service Unavailable"),
        lambda held: held.close(),
        huge,
    ],
    ids=["invalid_grant", "refused", "shape", "two subjects",
         "subject", "not json", "redirect", "429", "503", "closed", "huge"],
)  # fmt: skip
def test_a_refresh_that_fails_shows_no_token(service, identity, bad):
    """Neither the one that was presented nor those in the answer that was not taken.

    Not on the page, and not in the pickle that Celery makes of what a task raises.
    """
    service.answers["token"] = bad
    with pytest.raises(IdentityError) as caught:
        tokens.access_token_for(identity)
    shown = reported(caught.value) + collected(caught.value)
    assert "tokens.py" in shown
    assert not [secret for secret in (HELD, *SENT) if secret in shown]
    assert CLIENT_SECRET not in collected(caught.value)
    pickled = sent_home(caught.value)
    assert not [secret for secret in (HELD, *SENT) if secret.encode() in pickled]


@pytest.mark.parametrize(
    "bad",
    [
        lambda held: held.close(),
        answer({"error": "server_error"}, status="503 Service Unavailable"),
        http(b"subject-1", status="302 Found", headers="Location: /subject-1\r\n"),
        answer({"success": True, "data": {"user_id": "subject-2", "claims": []}}),
        answer({"success": True, "data": {"user_id": "subject-1", "claims": 7, "status": 7}}),
        answer({"success": False, "error": {"code": "NO"}, "for": "subject-1"}, status="400 Bad"),
    ],
    ids=["closed", "503", "redirect", "another subject", "shape", "refused"],
)  # fmt: skip
@pytest.mark.parametrize("endpoint", ["claims", "kyc"])
def test_a_read_that_fails_shows_no_token_and_no_person(service, bad, endpoint):
    """Whatever prints the variables."""
    service.answers[endpoint] = bad
    read = getattr(ServiceClient(conf.application()), endpoint)
    with pytest.raises(IdentityError) as caught:
        read("subject-1", access_token=Secret(ACCESS))
    shown = collected(caught.value)
    assert not [text for text in (ACCESS, "subject-1") if text in shown]


@pytest.mark.parametrize("statement", ["UPDATE", "INSERT"])
def test_a_refetch_that_cannot_be_stored_shows_no_credential(
    service, identity, statement
):
    """Nor the tokens with which it was read."""
    credential = service.credential()
    service.bend = lambda _another: credential
    service.answers["token"] = GOOD
    lost = connection.execute_wrapper(
        fails_at(statement, 2 if statement == "UPDATE" else 0)
    )
    with lost, pytest.raises(DatabaseError) as caught:
        refetch.fetch(identity)
    shown = reported(caught.value) + collected(caught.value)
    assert "refetch.py" in shown
    secrets = (HELD, *SENT, credential, *credential.split("~")[:-1])
    assert not [secret for secret in secrets if secret in shown]


@pytest.mark.parametrize("statement", ["INSERT", "SELECT", "UPDATE"])
@pytest.mark.usefixtures("as_in_production")
def test_an_event_that_fails_shows_nothing_of_its_body(caplog, statement):
    """A bug of ours, or of a receiver of Django's own signals."""
    make_identity(make_user())
    body = event_body("claim.revoked", provider="a-provider")
    broken = connection.execute_wrapper(fails_at(statement, 0, RuntimeError))
    with broken:
        assert post(body).status_code == 500
        with pytest.raises(UnexpectedError) as caught:
            events.receive(body, signature=signed(body))
    shown = collected(caught.value) + caplog.text
    assert "RuntimeError" in shown
    assert not [text for text in ("subject-1", "a-provider") if text in shown]
