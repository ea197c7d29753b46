"""A person with a browser: cookies, redirects, forms, and the approval at the sandbox."""

from html.parser import HTMLParser
from typing import Self
from urllib.parse import urljoin

import httpx

from django_identity.testing.sandbox import SandboxPerson
from tests.sites.running import RunningSite
from tests.sites.table import PASSWORD

MOST_REDIRECTS = 10


class Page(HTMLParser):
    """The forms of a page (address and fields), and where it leads by itself."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.forms: list[tuple[str, dict[str, str]]] = []
        #: What needs ``unsafe-inline``, or leaves the site's prefix.
        self.inline: list[str] = []
        self.links: list[str] = []
        self.leads_to = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.links += [given[name] for name in ("href", "src", "action") if name in given]
        if tag in ("style", "script") and "src" not in given:
            self.inline.append(tag)
        self.inline += [name for name in given if name == "style" or name.startswith("on")]
        if tag == "form":
            self.forms.append((given.get("action", ""), {}))
        elif tag == "meta" and given.get("http-equiv") == "refresh":
            self.leads_to = given["content"].partition("url=")[2]
        elif tag == "input" and self.forms and given.get("name"):
            self.forms[-1][1][given["name"]] = given.get("value", "")


class Browser:
    """A browser at ``site``. Paths are those of the site, below its prefix."""

    def __init__(self, site: RunningSite) -> None:
        self._site = site
        self._client = site.new_client()
        self.page = httpx.Response(200, request=httpx.Request("GET", site.address))
        #: Where the policy of the page lets its forms end, redirects included. Empty: anywhere.
        self._form_action = ""

    def open(self, path: str) -> httpx.Response:
        """Open a page and follow its redirects, up to the sandbox."""
        return self._follow(self._client.build_request("GET", self._site.address + path))

    def fetch(self, path: str) -> httpx.Response:
        """What a script of the page gets: no redirect is followed, and JSON is wanted."""
        return self._client.get(self._site.address + path, headers={"Accept": "application/json"})

    def submit(self, *, holding: str, **typed: str) -> httpx.Response:
        """Submit the form with this field."""
        here = str(self.page.url)
        fitting = [form for form in Page(self.page.text).forms if holding in form[1]]
        assert fitting, f"{self.page.status_code} {here}: {self.page.text}"
        action, fields = fitting[0]
        self._form_action = _form_action(self.page)
        return self._follow(
            self._client.build_request(
                "POST",
                urljoin(here, action or here),
                data={**fields, **typed},
                headers={"Referer": here},
            )
        )

    def approve(self, person: SandboxPerson) -> httpx.Response:
        """At the sandbox: sign in as ``person`` and approve; follow the way back."""
        leaving = str(self.page.next_request and self.page.next_request.url)
        assert not self._form_action or self._site.sandbox.auth_url in self._form_action
        assert leaving.startswith(self._site.sandbox.auth_url), leaving or self.page.text
        back = self._site.sandbox.approve(leaving, person)
        return self._follow(self._coming_from_elsewhere(back))

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
        """Press the button of the login page, and approve."""
        query = f"?next={self._site.prefix}{next_path}" if next_path else ""
        self.open(f"/identity/login/{query}")
        self.submit(holding="csrfmiddlewaretoken")
        return self.approve(person)

    def sign_in_locally(self, name: str) -> httpx.Response:
        """Sign in with the site's own page."""
        login = f"{name}@members.example" if self._site.site.names_are_addresses else name
        self.open("/accounts/login/")
        # allauth's form has another name for it.
        return self.submit(holding="password", username=login, login=login, password=PASSWORD)

    @property
    def whoami(self) -> dict[str, object]:
        """Who this site says is signed in."""
        answer: dict[str, object] = self.open("/whoami/").json()
        return answer

    @property
    def unwanted(self) -> list[str]:
        """Inline styles and scripts of the open page, and links out of the site's prefix."""
        page = Page(self.page.text)
        local = [each for each in page.links if not each.startswith(("#", "?", "http"))]
        return page.inline + [
            each for each in local if not each.startswith(f"{self._site.prefix}/")
        ]

    @property
    def path(self) -> str:
        """The path of the open page, below the site's prefix."""
        return str(self.page.url).removeprefix(self._site.address).partition("?")[0]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._client.close()

    def _follow(self, request: httpx.Request) -> httpx.Response:
        self.page = self._client.send(request)
        for _ in range(MOST_REDIRECTS):
            following = self._next_request()
            if following is None or not str(following.url).startswith(self._site.address):
                return self.page
            self.page = self._client.send(following)
        raise AssertionError(f"more than {MOST_REDIRECTS} redirects: {self.page.url}")

    def _next_request(self) -> httpx.Request | None:
        if self.page.next_request is not None:
            return self.page.next_request
        is_page = "html" in self.page.headers.get("Content-Type", "")
        leads_to = Page(self.page.text).leads_to if is_page else ""
        if not leads_to:
            return None
        return self._client.build_request("GET", urljoin(str(self.page.url), leads_to))


def _form_action(page: httpx.Response) -> str:
    policy = page.headers.get("Content-Security-Policy", "")
    directives = [each.split(maxsplit=1) for each in policy.split(";") if each.strip()]
    return "".join(value for name, *rest in directives for value in rest if name == "form-action")
