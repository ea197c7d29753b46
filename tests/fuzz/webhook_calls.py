"""Deliveries of any form: what comes over the wire, made into a call of the webhook's view."""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass, field

from django.core.handlers.wsgi import WSGIRequest

from django_identity.views.webhook import webhook
from tests.deliveries import signed

#: Everything that a sender can be answered while the database works.
ANSWERS = frozenset({200, 400, 401, 405, 409, 411, 413, 415})
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
