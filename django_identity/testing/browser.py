"""A person's browser, as far as the sandbox's plain HTML pages need one."""

from __future__ import annotations

import html
import re
from dataclasses import dataclass
from http.client import HTTPMessage
from http.cookiejar import CookieJar
from typing import IO
from urllib.error import HTTPError
from urllib.parse import urlencode, urljoin, urlsplit
from urllib.request import (
    HTTPCookieProcessor,
    HTTPRedirectHandler,
    ProxyHandler,
    Request,
    build_opener,
)

FORM = re.compile(r"<form.*?</form>", re.DOTALL)
ACTION = re.compile(r'<form[^>]*action="([^"]*)"')
HIDDEN = re.compile(r'type="hidden" name="([^"]*)" value="([^"]*)"')
SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Page:
    """An address and what stands there; ``left_to``: where a redirect leads out of the sandbox."""

    address: str
    text: str
    left_to: str = ""


class Browser:
    """Keeps cookies, follows the redirects of ``origin`` and stops at all others."""

    def __init__(self, origin: str) -> None:
        cookies = HTTPCookieProcessor(CookieJar())
        self._opener = build_opener(ProxyHandler({}), cookies, _WithinOrigin(origin))

    def open(self, address: str, form: dict[str, str] | None = None) -> Page:
        sent = None if form is None else urlencode(form).encode()
        request = Request(address, data=sent)  # noqa: S310  an address that the sandbox gave
        try:
            with self._opener.open(request, timeout=SECONDS) as answer:
                return Page(answer.url, answer.read().decode())
        except HTTPError as error:
            with error:
                text = error.read().decode("utf-8", "replace")
                left_to = error.headers.get("Location", "")
                return Page(error.url or address, text, left_to)

    def submit(self, page: Page, **fields: str) -> Page:
        """Send the form of ``page`` that has these fields, with its hidden ones."""
        for form in FORM.findall(page.text):
            if all(f'name="{name}"' in form for name in fields):
                action = ACTION.search(form)
                target = urljoin(page.address, html.unescape(action[1])) if action else page.address
                hidden = {name: html.unescape(value) for name, value in HIDDEN.findall(form)}
                return self.open(target, hidden | fields)
        raise LookupError(f"no form with {sorted(fields)} at {urlsplit(page.address).path}")


class _WithinOrigin(HTTPRedirectHandler):
    def __init__(self, origin: str) -> None:
        self._origin = origin

    def redirect_request(
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> Request | None:
        parts = urlsplit(newurl)
        if f"{parts.scheme}://{parts.netloc}" != self._origin:
            return None
        return super().redirect_request(req, fp, code, msg, headers, newurl)
