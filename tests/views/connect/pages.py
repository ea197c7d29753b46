"""What the tests of the page for a code share: browser, code, and the look of a refusal."""

import re
from typing import Any

from django.contrib.auth.models import User
from django.http import HttpResponse
from django.test import Client
from django.urls import reverse

CODE = "CNX-AB12-CD34"
PASTED = "My code is cnx ab12 cd34"
LOCAL = "django.contrib.auth.backends.ModelBackend"
#: What differs in the settings of a live site.
LIVE = {
    "ENVIRONMENT": "live",
    "BASE_URL": "https://service.example/api/v1",
    "AUTH_URL": "https://service.example",
}
SECRETS = (CODE, "AB12", "cnx ab12", "a-client-secret", "ada@example.org", "subject-1")


def browser_of(user: User) -> Client:
    client = Client()
    client.force_login(user, backend=LOCAL)
    return client


def hand_in(client: Client, code: str = CODE, **more: Any) -> HttpResponse:
    return client.post(reverse("identity:connect"), {"connect_code": code, **more})


def buttons(page: str) -> list[str]:
    """What can be done on the page, as its buttons say it, in their order."""
    pattern = r'class="identity-button[ "][^>]*>(.*?)</(?:a|button)>'
    found = re.findall(pattern, page, re.DOTALL)
    return [re.sub(r"<[^>]+>|\s+", " ", text).strip() for text in found]


def page_of(response: HttpResponse, code: str) -> str:
    """The page about this error."""
    page = response.content.decode()
    assert re.findall(r"· <code>([a-z_]+)</code>", page) == [code]
    return page


def refused(response: HttpResponse, code: str, status: int) -> str:
    page = page_of(response, code)
    assert response.status_code == status
    assert 'name="connect_code"' in page
    assert not [secret for secret in SECRETS if secret in page]
    return page
