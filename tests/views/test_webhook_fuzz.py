"""The webhook's answers, whatever is sent to it (hypothesis)."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field

import pytest
from django.core.handlers.wsgi import WSGIRequest
from hypothesis import given
from hypothesis import strategies as st

from django_identity.exceptions import EventRefused
from django_identity.handlers import EventType
from django_identity.models import WebhookEvent
from django_identity.service.webhooks import Event
from django_identity.views.webhook import webhook
from tests.deliveries import signed
from tests.effort import effort
from tests.test_strict_json import VALUES

#: Everything that a sender can be answered while the database works.
ANSWERS = frozenset({200, 400, 401, 405, 409, 411, 413})
WITHOUT_PREFIX = ("CONTENT_LENGTH", "CONTENT_TYPE")


@dataclass(frozen=True, slots=True)
class Call:
    """A request as a server hands it over. ``headers`` come on top of what fits the body.

    ``is_terminated``: the server marks the end of a body that has no length.
    """

    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)
    method: str = "POST"
    is_signed: bool = True
    has_length: bool = True
    is_terminated: bool = False

    def status(self) -> int:
        """What the view answers; whatever it raises, the caller gets."""
        return webhook(WSGIRequest(self._environ())).status_code

    def _environ(self) -> dict[str, object]:
        environ: dict[str, object] = {
            "REQUEST_METHOD": self.method,
            "PATH_INFO": "/identity/webhook/",
            "SERVER_NAME": "testserver",
            "SERVER_PORT": "80",
            "CONTENT_TYPE": "application/json",
            "wsgi.url_scheme": "http",
            "wsgi.input": io.BytesIO(self.body),
            "wsgi.input_terminated": self.is_terminated,
        }
        if self.has_length:
            environ["CONTENT_LENGTH"] = str(len(self.body))
        if self.is_signed:
            environ["HTTP_X_WEBHOOK_SIGNATURE"] = signed(self.body)
        for name, value in self.headers.items():
            key = name.upper().replace("-", "_")
            environ[key if key in WITHOUT_PREFIX else f"HTTP_{key}"] = value
        return environ


ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=300)
TYPES = st.sampled_from([*EventType, "consent_revoked", "user_deleted", "wallet.opened"])
MOMENTS = st.datetimes().map(lambda moment: moment.isoformat() + "Z") | ANY_TEXT
ABOUT = st.dictionaries(
    st.sampled_from(
        ["user_id", "sub", "kyc_level", "status", "provider", "claim_type", "scopes", "\0"]
    ),
    VALUES | ANY_TEXT,
    max_size=6,
)
MEMBERS = st.fixed_dictionaries(
    {
        "event_type": TYPES | VALUES,
        "event_id": ANY_TEXT | VALUES,
        "timestamp": MOMENTS | VALUES,
        "data": ABOUT | VALUES,
    }
)


@st.composite
def sound_events(draw: st.DrawFn) -> dict[str, object]:
    """Well-formed but for what they say about the subject."""
    moment = draw(st.datetimes())
    return {
        "event_type": draw(TYPES),
        "event_id": draw(st.text("abcÄ ☃_0", min_size=1, max_size=255)),
        "timestamp": moment.isoformat() + draw(st.sampled_from(["Z", "+05:30", ""])),
        "data": {"user_id": draw(st.text("abc", min_size=1)), **draw(ABOUT)},
    }


BODIES = st.binary(max_size=400) | (MEMBERS | sound_events() | VALUES).flatmap(
    lambda members: st.sampled_from([True, False]).map(
        lambda as_ascii: json.dumps(members, ensure_ascii=as_ascii).encode("utf-8", "surrogatepass")
    )
)
LATIN = st.text(st.characters(max_codepoint=255), max_size=80)
HEADERS = st.dictionaries(
    st.sampled_from(
        ["content-length", "content-type", "content-encoding", "x-webhook-signature", "cookie"]
    ),
    LATIN | st.sampled_from(["0", "262145", "9" * 400, "-1", "gzip", "multipart/form-data"]),
    max_size=2,
)


@effort(few=40, many=5000)
@given(body=BODIES)
def test_a_body_is_an_event_or_unreadable(body: bytes) -> None:
    """No other error leaves the parser."""
    with suppress(EventRefused):
        assert Event.parse(body).event_id


@pytest.mark.django_db(transaction=True)
@effort(few=40, many=5000)
@given(
    body=BODIES,
    headers=st.just({}) | HEADERS,
    method=st.just("POST") | LATIN,
    is_signed=st.booleans(),
    has_length=st.booleans(),
    is_terminated=st.booleans(),
)
def test_every_delivery_gets_one_of_its_answers(
    body: bytes,
    headers: dict[str, str],
    method: str,
    is_signed: bool,
    has_length: bool,
    is_terminated: bool,
) -> None:
    """200, 400, 401, 405, 411 or 413, signed or not; and only what is signed is stored."""
    before = WebhookEvent.objects.count()
    call = Call(body, headers, method, is_signed, has_length, is_terminated)
    status = call.status()
    assert status in ANSWERS
    assert status == 200 or WebhookEvent.objects.count() == before
