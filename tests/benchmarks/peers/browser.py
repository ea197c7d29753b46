"""A browser without a person: it calls a WSGI application, and keeps its cookies."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable
from http.cookies import SimpleCookie
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

ORIGIN = "https://shop.example"
CSRF_TOKEN = "c" * 32
Application = Callable[..., Iterable[bytes]]


class Browser:
    """It has seen a page with a form of the site, so it has a CSRF cookie."""

    def __init__(self, application: Application) -> None:
        self._application = application
        self.cookies = {"csrftoken": CSRF_TOKEN}

    def get(self, address: str) -> tuple[int, str, bytes]:
        return self.call("GET", address)

    def post_form(self, address: str) -> tuple[int, str, bytes]:
        """Press a button whose form has nothing but the CSRF token."""
        body = urlencode({"csrfmiddlewaretoken": CSRF_TOKEN}).encode()
        return self.call("POST", address, body, "application/x-www-form-urlencoded")

    def call(
        self, method: str, address: str, body: bytes = b"", content_type: str = "", **headers: str
    ) -> tuple[int, str, bytes]:
        """Status, Location and body of the response."""
        path, _, query = address.removeprefix(ORIGIN).partition("?")
        environ: dict[str, Any] = {
            "REQUEST_METHOD": method,
            "SCRIPT_NAME": "",
            "PATH_INFO": path,
            "QUERY_STRING": query,
            "SERVER_NAME": "shop.example",
            "SERVER_PORT": "443",
            "SERVER_PROTOCOL": "HTTP/1.1",
            "REMOTE_ADDR": "203.0.113.7",
            "HTTP_HOST": "shop.example",
            "HTTP_REFERER": f"{ORIGIN}/",
            "HTTP_ACCEPT": "text/html",
            "HTTP_ACCEPT_LANGUAGE": "en",
            "HTTP_COOKIE": "; ".join(f"{name}={value}" for name, value in self.cookies.items()),
            "CONTENT_TYPE": content_type,
            "CONTENT_LENGTH": str(len(body)),
            "wsgi.version": (1, 0),
            "wsgi.url_scheme": "https",
            "wsgi.input": io.BytesIO(body),
            "wsgi.errors": io.StringIO(),
            "wsgi.multithread": True,
            "wsgi.multiprocess": True,
            "wsgi.run_once": False,
            **headers,
        }
        started: list[tuple[str, list[tuple[str, str]]]] = []
        response: Any = self._application(
            environ, lambda status, fields, *_: started.append((status, fields))
        )
        content = b"".join(response)
        response.close()
        status, fields = started[0]
        location = ""
        for name, value in fields:
            if name.lower() == "set-cookie":
                for cookie in SimpleCookie(value).values():
                    self.cookies[cookie.key] = cookie.value
            elif name.lower() == "location":
                location = value
        return int(status[:3]), location, content


def sign_in(application: Application, start: str, *, by_form: bool) -> Browser:
    """Press the button, approve at the service, and come back signed in."""
    browser = Browser(application)
    status, location, content = browser.post_form(start) if by_form else browser.get(start)
    if status != 302:
        raise SystemExit(f"{start} answered {status}: {content[:2000]!r}")
    sent = {name: values[0] for name, values in parse_qs(urlsplit(location).query).items()}
    # The service gets the nonce back with the code; an OpenID Connect client checks it.
    given = {"code": sent.get("nonce", "a-code"), "state": sent["state"]}
    status, location, content = browser.get(f"{sent['redirect_uri']}?{urlencode(given)}")
    if (status, location) != (302, "/who/"):
        raise SystemExit(f"the callback answered {status} {location}: {content[:2000]!r}")
    return browser
