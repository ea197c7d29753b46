"""A minimal browser for the self-check: cookies, redirects and forms."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser
from urllib.parse import urljoin

import httpx

MOST_REDIRECTS = 10


@dataclass
class Form:
    """A form of a page: its address, its fields with their values, and its named buttons."""

    action: str
    fields: dict[str, str] = field(default_factory=dict)
    buttons: set[str] = field(default_factory=set)

    @property
    def names(self) -> set[str]:
        return self.buttons | self.fields.keys()


def _is_sent(given: dict[str, str]) -> bool:
    """Whether a browser sends the field as it stands: not a box without its tick."""
    return given.get("type") != "checkbox" or "checked" in given


class _Forms(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.forms: list[Form] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "form":
            self.forms.append(Form(given.get("action", "")))
        elif tag == "input" and self.forms and given.get("name") and _is_sent(given):
            self.forms[-1].fields[given["name"]] = given.get("value", "")
        elif tag == "button" and self.forms and given.get("name"):
            self.forms[-1].buttons.add(given["name"])


class Browser:
    """A browser with one open page."""

    def __init__(self, client: httpx.Client | None = None) -> None:
        self._client = client or httpx.Client(trust_env=False, timeout=10)
        self.page = httpx.Response(200, request=httpx.Request("GET", "about:blank"))

    def open(self, address: str) -> None:
        self._follow(self._client.build_request("GET", address))

    def submit(self, *, holding: str = "", to: str = "", **typed: str) -> None:
        """Submit the form with the field or button ``holding``, or with the address ``to``."""
        parser = _Forms()
        parser.feed(self.page.text)
        form = next(
            form
            for form in parser.forms
            if form.action.endswith(to) and (not holding or holding in form.names)
        )
        address = urljoin(self.address, form.action or self.address)
        headers = {"Referer": self.address}
        sent = {**form.fields, **typed}
        self._follow(
            self._client.build_request("POST", address, data=sent, headers=headers),
        )

    def ask(self, address: str) -> httpx.Response:
        """What ``address`` answers, without following it. The open page stays."""
        return self._client.get(address)

    def cookie(self, name: str) -> str:
        return str(self._client.cookies[name])

    @property
    def address(self) -> str:
        return str(self.page.url)

    @property
    def path(self) -> str:
        return self.page.url.path

    def close(self) -> None:
        self._client.close()

    def _follow(self, request: httpx.Request) -> None:
        self.page = self._client.send(request)
        for _ in range(MOST_REDIRECTS):
            following = self._next_request()
            if following is None:
                return
            self.page = self._client.send(following)

    def _next_request(self) -> httpx.Request | None:
        """The request to which the open page leads by itself."""
        return self.page.next_request
