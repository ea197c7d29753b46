"""A person with a browser: what strict cookies, policies and prefixes do to them."""

import re
from collections.abc import Mapping
from html import unescape
from typing import Self
from urllib.parse import urljoin

import httpx

from django_identity.testing.sandbox import SandboxPerson
from example_project.demo import browser
from tests.sites.running_site import RunningSite
from tests.sites.site_table import PASSWORD

# Addresses in a page, but those of the page itself and of another host.
LINKS = re.compile(r'(?:href|src|action)="((?![#?]|http)[^"]*)"')
LEADS_TO = re.compile(r'<meta http-equiv="refresh" content="\d+; ?url=([^"]+)"')


class Browser(browser.Browser):
    """A browser at ``site``. Paths are those of the site, below its prefix."""

    def __init__(self, site: RunningSite) -> None:
        super().__init__(site.new_client())
        self._site = site
        #: Where the policy of the page lets its forms end, redirects included. Empty: anywhere.
        self._form_action = ""

    def open(self, path: str) -> httpx.Response:
        """Open a page and follow its redirects, up to the sandbox."""
        super().open(self._site.address + path)
        return self.page

    def fetch(self, path: str) -> httpx.Response:
        """What a script of the page gets: no redirect is followed, and JSON is wanted."""
        return self._client.get(
            self._site.address + path,
            headers={"Accept": "application/json"},
        )

    def send(self, path: str, headers: Mapping[str, str]) -> httpx.Response:
        """What a script of the page gets for an empty POST."""
        return self._client.post(self._site.address + path, headers=headers)

    def submit(
        self,
        *,
        holding: str = "",
        to: str = "",
        **typed: str,
    ) -> httpx.Response:
        policy = self.page.headers.get("Content-Security-Policy", "")
        directives = [each.strip() for each in policy.split(";")]
        self._form_action = "".join(
            each for each in directives if each.startswith("form-action")
        )
        super().submit(holding=holding, to=to, **typed)
        return self.page

    def approve(self, person: SandboxPerson) -> httpx.Response:
        """At the sandbox: sign in as ``person`` and approve; follow the way back."""
        leaving = str(self.page.next_request and self.page.next_request.url)
        assert not self._form_action or self._site.sandbox.auth_url in self._form_action
        assert leaving.startswith(self._site.sandbox.auth_url), (
            leaving or self.page.text
        )
        self._follow(
            self._coming_from_elsewhere(self._site.sandbox.approve(leaving, person)),
        )
        return self.page

    def _coming_from_elsewhere(self, address: str) -> httpx.Request:
        """A request without the cookies that a browser sends only from the site itself."""
        kept = list(self._client.cookies.jar)
        for cookie in kept:
            if cookie.get_nonstandard_attr("SameSite") == "Strict":
                self._client.cookies.jar.clear(cookie.domain, cookie.path, cookie.name)
        request = self._client.build_request("GET", address)
        for cookie in kept:
            self._client.cookies.jar.set_cookie(cookie)
        return request

    def sign_in(self, person: SandboxPerson, *, next_path: str = "") -> httpx.Response:
        query = f"?next={self._site.prefix}{next_path}" if next_path else ""
        self.open(f"/identity/login/{query}")
        self.submit(holding="csrfmiddlewaretoken")
        return self.approve(person)

    def sign_in_locally(self, name: str) -> httpx.Response:
        login = (
            f"{name}@members.example" if self._site.site.names_are_addresses else name
        )
        self.open("/accounts/login/")
        # allauth's form has another name for it.
        return self.submit(
            holding="password",
            username=login,
            login=login,
            password=PASSWORD,
        )

    @property
    def whoami(self) -> dict[str, object]:
        answer: dict[str, object] = self.open("/whoami/").json()
        return answer

    @property
    def links_outside(self) -> list[str]:
        """Links of the open page that lead out of the site's prefix."""
        links = LINKS.findall(self.page.text)
        return [each for each in links if not each.startswith(f"{self._site.prefix}/")]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def _next_request(self) -> httpx.Request | None:
        """Also that of a page that opens another one; not the one to the sandbox."""
        following = super()._next_request()
        if following is None and (leads_to := LEADS_TO.search(self.page.text)):
            address = urljoin(self.address, unescape(leads_to[1]))
            following = self._client.build_request("GET", address)
        is_here = following is not None and str(following.url).startswith(
            self._site.address,
        )
        return following if is_here else None
