"""The checks that keep the sandbox, and what everybody knows of it, out of a site (E013, E018)."""

from collections.abc import Mapping
from typing import Any

import pytest
from django.conf import settings
from django.core.checks import run_checks
from django.test import override_settings

from django_identity import conf
from django_identity.checks import site
from django_identity.sandbox import sandbox_application

GIVEN = sandbox_application()


def test_one_line_configures_a_site() -> None:
    """Every check passes on a development machine, and the values are those of the check."""
    with override_settings(DJANGO_IDENTITY={"default": sandbox_application()}):
        assert not conf.problems()
        assert "django_identity.E018" not in {each.id for each in run_checks()}
    elsewhere = sandbox_application("http://127.0.0.1:9500")
    assert elsewhere["SERVICE_ACCOUNT_URL"] == "http://127.0.0.1:9500/account/"
    values = [GIVEN["CLIENT_ID"], GIVEN["CLIENT_SECRET"], *GIVEN["WEBHOOK_SECRETS"]]
    assert all(each.startswith(site.SANDBOX_VALUES) for each in values)


OWN = {
    "ENVIRONMENT": "live", "BASE_URL": "https://service.example/api/v1", "CLIENT_ID": "own",
    "AUTH_URL": "https://auth.example", "CLIENT_SECRET": "a-secret-of-the-site-itself",
    "WEBHOOK_SECRETS": ["another-secret-of-the-site"],
}  # fmt: skip


@pytest.mark.parametrize(
    "applications",
    [
        {"default": OWN, "try": GIVEN},
        {"default": {**OWN, "WEBHOOK_SECRETS": GIVEN["WEBHOOK_SECRETS"]}},
        {"default": {**OWN, "CLIENT_SECRET": GIVEN["CLIENT_SECRET"]}},
    ],
)
def test_a_check_keeps_it_out_of_live(applications: Mapping[str, Any]) -> None:
    """What everybody knows protects nobody; on a server, no environment passes."""
    with override_settings(DJANGO_IDENTITY=applications):
        assert "django_identity.E018" in {each.id for each in run_checks()}
    for given, expected in ((GIVEN, True), (OWN, False)):
        with override_settings(DJANGO_IDENTITY={"default": given}):
            found = {each.id for each in run_checks(include_deployment_checks=True)}
        assert ("django_identity.E018" in found) is expected


@pytest.mark.parametrize(
    ("setting", "path", "count"),
    [
        ("INSTALLED_APPS", "django_identity.sandbox", 1),
        ("INSTALLED_APPS", "django_identity.sandbox.apps.SandboxConfig", 1),
        ("INSTALLED_APPS", "django_identity.testing", 1),
        ("MIDDLEWARE", "django_identity.sandbox.middleware.SandboxMiddleware", 1),
        ("MIDDLEWARE", "django_identity.sandboxes.Middleware", 0),
    ],
)
def test_a_site_that_lists_it_fails_its_check(setting: str, path: str, count: int) -> None:
    """An error names the setting; the sandbox's tables are not made in the site's database."""
    with override_settings(**{setting: [*getattr(settings, setting), path]}):
        found = [each for each in run_checks() if each.id == "django_identity.E013"]
    assert len(found) == count
    assert all(setting in each.msg for each in found)
