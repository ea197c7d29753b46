"""How a sign-in that goes wrong ends: the same for every kind of bad input."""

import io
import logging
import re
from dataclasses import dataclass
from typing import Any, Self

import pytest
from django.contrib.auth.models import User
from django.contrib.sessions.backends.db import SessionStore
from django.core.handlers.wsgi import WSGIRequest
from django.db.models import QuerySet
from django.http import HttpResponse, QueryDict
from django.urls import reverse
from django.utils.html import escape

from django_identity.exceptions import IdentityError
from django_identity.models import LinkedIdentity, TokenGrant
from django_identity.web.answers import COOKIE

SECRETS = (
    "at-secret",
    "rt-secret",
    "a-code",
    "a-client-secret",
    "ada@example.org",
    "subject-1",
    "Obi",
    "<script",
)
WAY_ON = re.compile(r'<a class="identity-button" href="/(?!/)')


class CutOff(io.BytesIO):
    """The body of a request whose connection ends."""

    def read(self, _size: int | None = -1, /) -> bytes:
        raise OSError("the client has gone")


@dataclass(frozen=True)
class Brought:
    """What a browser brought to a request, and what its session had then."""

    path: str
    query: QueryDict
    cookies: dict[str, str]
    session: dict[str, Any]

    @classmethod
    def by(cls, environ: dict[str, Any]) -> Self:
        request = WSGIRequest(environ)
        session = SessionStore(request.COOKIES.get("sessionid"))
        return cls(request.path, request.GET, request.COOKIES, dict(session.load()))

    def secrets(self) -> list[str]:
        """What is nobody else's to know: code, state and the browser's own keys."""
        values = [*self.query.getlist("code"), *self.query.getlist("state")]
        values += self.cookies.values()
        return [value for value in values if len(value) > 3]


def refused(
    response: HttpResponse,
    code: str,
    caplog: pytest.LogCaptureFixture,
    *,
    brought: list[Brought],
    made: int = 0,
) -> None:
    """A page that says what to do, a typed error behind it, one line in the log, no secret.

    Nobody was made, nothing that arrived was kept, and no cookie or session was touched; ``made``:
    how many came in before.
    """
    if response.status_code == 302:
        unchanged(response)
        is_secure = response.wsgi_request.is_secure()
        response = response.client.get(response["Location"], secure=is_secure)
    *_earlier, at_callback, at_page = brought
    if at_page.path == reverse("identity:answer"):
        new = at_page.cookies.keys() - at_callback.cookies.keys()
        assert new <= {"messages", COOKIE}
        assert at_page.session == at_callback.session
    error = response.context["error"]
    assert isinstance(error, IdentityError)
    assert error.code == code
    assert 400 <= response.status_code < 600
    page = response.content.decode()
    # A denial is no failure to report.
    is_calm = code == "access_denied"
    assert (
        f"<code>{error.reference}</code> · <code>{code}</code>" in page
    ) is not is_calm
    assert ("<title>Error:" in page) is not is_calm
    assert f"autofocus>{escape(response.context['error_title'])}</h1>" in page
    assert escape(response.context["error_sentence"]) in page
    assert len(WAY_ON.findall(page)) == page.count('class="identity-button"') == 1
    (line,) = [each for each in lines_of_ours(caplog) if ".failed " in each]
    assert line.startswith("identity.sign_in.failed ")
    assert f" code={code} " in line
    assert f" reference={error.reference} " in line
    everything = page + caplog.text
    carried = [secret for request in brought for secret in request.secrets()]
    assert not [secret for secret in (*SECRETS, *carried) if secret in everything]
    assert _made_by_us().count() == TokenGrant.objects.count() == made
    unchanged(response)
    caplog.clear()


def unchanged(response: HttpResponse) -> None:
    """Whoever is signed in stays so, and whoever is not gets no session."""
    assert not response.wsgi_request.session.modified
    assert not response.cookies.keys() - {"messages", COOKIE}, response.cookies


def lines_of_ours(caplog: pytest.LogCaptureFixture) -> list[str]:
    """The lines about people. Whether the service is away has lines of its own."""
    return [
        record.getMessage()
        for record in caplog.records
        if record.name.startswith("django_identity")
        and record.levelno > logging.DEBUG
        and not record.getMessage().startswith("identity.service.")
    ]


def nobody_was_made() -> bool:
    return not User.objects.exists() and not LinkedIdentity.objects.exists()


def _made_by_us() -> QuerySet[User]:
    """Users with no password are ours; those of the tests have one."""
    return User._base_manager.filter(password__startswith="!")
