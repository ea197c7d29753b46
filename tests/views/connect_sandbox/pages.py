"""A site of the sandbox's application, and its page for codes."""

import re

from django.http import HttpResponse
from django.test import override_settings

from tests.sandbox.driver import Application


def site_of(application: Application, **changes: object) -> override_settings:
    settings = {
        "ENVIRONMENT": "test",
        "BASE_URL": application.sandbox.api,
        "AUTH_URL": application.sandbox.origin,
        "CLIENT_ID": application.client_id,
        "CLIENT_SECRET": application.client_secret,
        **changes,
    }
    return override_settings(DJANGO_IDENTITY={"default": settings})


def refused(response: HttpResponse, code: str) -> str:
    page = response.content.decode()
    assert re.findall(r"· <code>([a-z_]+)</code>", page) == [code]
    return page
