"""``manage.py identity_refetch`` does upkeep where there is no worker."""

from __future__ import annotations

import io
import signal
from datetime import timedelta
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.test import override_settings
from django.utils import timezone

from django_identity import conf
from django_identity.exceptions import RateLimited
from django_identity.models import LinkedIdentity
from django_identity.service import backoff
from tests.factories import make_grant, make_identity, make_user
from tests.fake_service import FakeService, answer, html, http

pytestmark = pytest.mark.django_db(transaction=True)


def due(number: int, *, ago: int = 60, **fields: Any) -> LinkedIdentity:
    moment = timezone.now() - timedelta(minutes=ago - number)
    identity = make_identity(
        make_user(f"user-{number}"), subject=f"subject-{number}", refetch_due_at=moment, **fields
    )
    make_grant(identity)
    return identity


def refetch(*arguments: object, stderr: io.StringIO | None = None, **options: Any) -> str:
    out = io.StringIO()
    try:
        call_command(
            "identity_refetch", *map(str, arguments), stdout=out, stderr=stderr or io.StringIO(),
            **options,
        )  # fmt: skip
    except CommandError as error:
        return f"{out.getvalue()}error {error.returncode}: {error}"
    return out.getvalue()


def still_due() -> int:
    return LinkedIdentity.objects.filter(refetch_due_at__lte=timezone.now()).count()


@pytest.fixture
def three(service: FakeService) -> list[LinkedIdentity]:
    """Three that are due, and a service that answers about whoever is asked for."""

    def turn() -> None:
        service.subject = service.newest("claims").split("/")[-2]
        service.answers.setdefault("claims", lambda connection: connection.sendall(answer(good())))

    def good() -> Any:
        return service.good("claims")

    service.meanwhile["claims"] = turn
    return [due(number) for number in (1, 2, 3)]


def test_all_that_is_due(service: FakeService, three: list[LinkedIdentity]) -> None:
    """Every due identity is re-fetched once, and the summary says how each ended."""
    assert refetch("--due").splitlines() == ["stored: 3"]
    assert still_due() == 0
    assert refetch("--due").strip() == "Nothing to do."
    assert service.calls("claims") == 3


def test_no_more_than_the_limit(service: FakeService, three: list[LinkedIdentity]) -> None:
    """``--limit`` takes the longest due and leaves the others free."""
    assert refetch("--due", "--limit", 1).strip() == "stored: 1"
    assert still_due() == 2


def test_the_limit_holds_over_all_applications(
    service: FakeService, three: list[LinkedIdentity]
) -> None:
    """What the first one used is not the second one's to use again."""
    both = {"default": service.settings(), "other": service.settings()}
    with override_settings(DJANGO_IDENTITY=both):
        for number in (4, 5):
            due(number, application="other")
        refetch("--due", "--limit", 4)
    assert (service.calls("claims"), still_due()) == (4, 1)


def test_no_more_named_than_the_limit(service: FakeService, three: list[LinkedIdentity]) -> None:
    """Of those named, the first."""
    refetch(*(identity.pk for identity in three), "--limit", 2)
    assert service.calls("claims") == 2


def test_those_named_due_or_not(service: FakeService, three: list[LinkedIdentity]) -> None:
    """An id is enough; one that does not exist is passed over."""
    refetch("--due")
    assert refetch(three[0].pk, 999_999).strip() == "stored: 1"


@pytest.mark.parametrize("arguments", [(), ("--due", "1"), ("--due", "--limit", "0")])
def test_senseless_arguments(service: FakeService, arguments: tuple[str, ...]) -> None:
    """Neither what nor everything, both, or none at all: a sentence says what is wanted."""
    assert "error 1: " in refetch(*arguments)


def test_settings_that_cannot_be_used_are_a_sentence(
    service: FakeService, three: list[LinkedIdentity]
) -> None:
    """No traceback of the command."""
    with override_settings(DJANGO_IDENTITY={"default": {}}):
        assert "error 1: configuration: " in refetch("--due")


def test_a_service_that_pauses_ends_it(service: FakeService, three: list[LinkedIdentity]) -> None:
    """After a 429 nothing more is asked, the command fails, and the rest stays due."""
    service.answers["claims"] = http(b"", status="429 Slow", headers="Retry-After: 60\r\n")
    assert "takes no calls" in refetch("--due")
    assert (still_due(), service.calls("claims")) == (2, 1)


def test_a_service_that_pauses_is_said(service: FakeService, three: list[LinkedIdentity]) -> None:
    """That nothing was done is no "nothing to do"."""
    backoff.begin_pause(conf.application(), RateLimited(pause=60))
    said = refetch("--due")
    assert "Nothing to do" not in said
    assert "error 1: The service takes no calls" in said
    assert (still_due(), service.calls("claims")) == (3, 0)


class Watched(io.StringIO):
    """A terminal."""

    def isatty(self) -> bool:
        return True


def test_the_bar_counts_to_the_end(service: FakeService, three: list[LinkedIdentity]) -> None:
    """Whoever looks sees how far it is, of no more than the limit."""
    terminal = Watched()
    refetch("--due", "--limit", 2, stderr=terminal)
    assert "2/2" in terminal.getvalue()
    refetch("--due", stderr=terminal)
    assert "1/1" in terminal.getvalue()


class Interrupting(io.StringIO):
    """A terminal whose person presses Ctrl-C when the bar appears, or whose machine is stopped."""

    def __init__(self, *signals: signal.Signals) -> None:
        super().__init__()
        self._signals = signals or (signal.SIGINT,)

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        if "| 1/" in text and "| 1/" not in self.getvalue():
            for number in self._signals:
                signal.raise_signal(number)
        return super().write(text)


@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_ends_it_cleanly(service: FakeService, three: list[LinkedIdentity]) -> None:
    """What is under way is finished, what was taken is let go, the summary is printed."""
    said = refetch("--due", stderr=Interrupting())
    assert "stored: 1" in said
    assert "error 130: Stopped." in said
    assert still_due() == 2
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.usefixtures("ctrl_c")
def test_the_second_ctrl_c_ends_it_at_once(
    service: FakeService, three: list[LinkedIdentity]
) -> None:
    """Whoever presses it again does not want to wait."""
    with pytest.raises(KeyboardInterrupt):
        refetch("--due", stderr=Interrupting(signal.SIGINT, signal.SIGINT))
    assert service.calls("claims") == 1
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_nothing_about_a_person_is_printed(
    service: FakeService, three: list[LinkedIdentity], caplog: pytest.LogCaptureFixture
) -> None:
    """Neither output nor log names a subject or a token, whatever goes wrong."""
    service.answers["claims"] = html()
    service.answers["token"] = answer({"error": "invalid_grant"}, status="400 Bad Request")
    errors = io.StringIO()
    with caplog.at_level("DEBUG", logger="django_identity"):
        said = refetch("--due", stderr=errors) + errors.getvalue() + caplog.text
    assert "subject-" not in said
    assert "at-0" not in said
    assert "rt-0" not in said


def test_nobody_is_an_error(service: FakeService, three: list[LinkedIdentity]) -> None:
    """Ids of which none can be re-fetched are a typing error: exit code 1."""
    assert "error 1: No linked identity" in refetch(999_999)


def test_a_dead_service_without_keys_is_an_error(
    service: FakeService, three: list[LinkedIdentity]
) -> None:
    """Nothing could be verified, so a person has to look: cron hears of it."""
    service.answers["jwks"] = http(b"", status="500 Oops")
    assert "error 1: " in refetch("--due")
    assert still_due() > 0
