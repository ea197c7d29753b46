"""A site that signs people in with social-auth, as a process of its own.

``python -m tests.others.social_site`` reads the sandbox's origin, an application and a person as
JSON, walks through one sign-in, and prints whom social-auth signed in.
"""

from __future__ import annotations

import json
import sys
from typing import Any
from urllib.request import Request, urlopen

import django
from django.conf import settings
from django.core.management import call_command
from social_core.backends.oauth import BaseOAuth2PKCE


class SandboxOAuth2(BaseOAuth2PKCE):
    """What a site writes to add a provider."""

    name = "sandbox"
    ID_KEY = "id"
    SCOPE_SEPARATOR = " "
    DEFAULT_SCOPE = ["profile:read"]
    ACCESS_TOKEN_METHOD = "POST"
    REDIRECT_STATE = False

    @property
    def origin(self) -> str:
        return str(self.setting("ORIGIN"))

    def authorization_url(self) -> str:
        return f"{self.origin}/oauth2/auth"

    def access_token_url(self) -> str:
        return f"{self.origin}/oauth2/token"

    def get_user_details(self, response: dict[str, Any]) -> dict[str, Any]:
        return {"username": response["id"], "email": response["email"]}

    def user_data(self, access_token: str, *args: Any, **kwargs: Any) -> Any:
        headers = {"Authorization": f"Bearer {access_token}"}
        address = f"{self.origin}/api/v1/users/me/profile"
        return self.get_json(address, headers=headers)["data"]


def configure(given: dict[str, str]) -> None:
    settings.configure(
        SECRET_KEY="a key for tests alone, of no use anywhere else",
        ALLOWED_HOSTS=["testserver"],
        ROOT_URLCONF="tests.others.social_urls",
        DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}},
        DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
        INSTALLED_APPS=[
            "django.contrib.auth", "django.contrib.contenttypes", "django.contrib.sessions",
            "social_django",
        ],
        MIDDLEWARE=[
            "django.contrib.sessions.middleware.SessionMiddleware",
            "django.contrib.auth.middleware.AuthenticationMiddleware",
        ],
        AUTHENTICATION_BACKENDS=["tests.others.social_site.SandboxOAuth2"],
        LOGIN_REDIRECT_URL="/done/",
        SOCIAL_AUTH_SANDBOX_ORIGIN=given["origin"],
        SOCIAL_AUTH_SANDBOX_KEY=given["client_id"],
        SOCIAL_AUTH_SANDBOX_SECRET=given["client_secret"],
    )  # fmt: skip
    django.setup()
    call_command("migrate", verbosity=0)


def approved(given: dict[str, str], address: str) -> str:
    """Where the sandbox sends the person after they approved."""
    body = json.dumps({"url": address, "user_id": given["user_id"]}).encode()
    request = Request(f"{given['origin']}/sandbox/authorizations", data=body, method="POST")
    with urlopen(request, timeout=10) as response:
        return str(json.load(response)["callback"])


def main() -> None:
    given = json.load(sys.stdin)
    configure(given)
    # They need settings.
    from django.contrib.auth.models import User  # noqa: PLC0415
    from django.test import Client  # noqa: PLC0415

    browser = Client(raise_request_exception=True)
    leaving = browser.post("/login/sandbox/")
    callback = approved(given, leaving["Location"])
    came = browser.get(callback.removeprefix("http://testserver"))
    user = User.objects.get()
    social = user.social_auth.get()
    found = {"landed": came["Location"], "email": user.email, "uid": social.uid}
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main()
