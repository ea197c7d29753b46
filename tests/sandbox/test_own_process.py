"""The sandbox runs in a process of its own: none that serves a site, in live least of all."""

import subprocess
import sys

import pytest
from django.conf import settings
from django.core.checks import Error, run_checks
from django.test import override_settings

SITE = """
from django.conf import settings
settings.configure(
    DJANGO_IDENTITY={{"default": {{"ENVIRONMENT": "{environment}"}}}},
    SECRET_KEY="x",
    DATABASES={{"default": {{"ENGINE": "django.db.backends.sqlite3", "NAME": "{database}"}}}},
    {settings}
)
"""
MIDDLEWARE = (
    "django_identity.sandbox.control.access.ControlMiddleware",
    "django_identity.sandbox.instruments.request_log.RequestLogMiddleware",
    "django_identity.sandbox.instruments.fault_injection.FaultMiddleware",
    "django_identity.sandbox.pages.headers.PageHeadersMiddleware",
)


def in_a_site(
    code: str, *, environment: str = "live", settings: str = ""
) -> subprocess.CompletedProcess[str]:
    """Run ``code`` in a process that has a site's settings."""
    site = SITE.format(environment=environment, settings=settings, database=":memory:")
    return subprocess.run(
        [sys.executable, "-c", site + code],
        capture_output=True, text=True, timeout=30, check=False,
    )  # fmt: skip


@pytest.mark.processes
@pytest.mark.parametrize(
    ("environment", "words"), [("live", "a site in live"), ("test", "a site's settings")]
)
def test_the_command_refuses_in_a_line(environment: str, words: str) -> None:
    """Exit code 2, one line, nothing listens."""
    code = "import sys; from django_identity.sandbox import __main__ as sandbox\n"
    ended = in_a_site(code + "sys.exit(sandbox.main(['--port=0']))", environment=environment)
    assert ended.returncode == 2
    assert words in ended.stderr
    assert ended.stderr.count("\n") == 1
    assert ended.stdout == ""


@pytest.mark.processes
def test_its_parts_refuse_in_live() -> None:
    """Whoever puts the sandbox together by hand gets the same answer, and no table is made."""
    code = (
        "from pathlib import Path; from django_identity.sandbox.server import http_server\n"
        "http_server.start_django(origin='http://127.0.0.1:1', database_path=Path('x'),"
        " portal_token='x')"
    )
    ended = in_a_site(code)
    assert ended.returncode == 1
    assert "does not run in a process that serves a site in live" in ended.stderr


@pytest.mark.processes
@pytest.mark.parametrize("path", MIDDLEWARE)
def test_a_live_site_does_not_start_with_its_middleware(path: str) -> None:
    """The server ends before it answers anybody."""
    code = "from django.core.wsgi import get_wsgi_application as start; start()"
    ended = in_a_site(code, settings=f"MIDDLEWARE=[{path!r}], ALLOWED_HOSTS=['*']")
    assert ended.returncode == 1
    assert "does not run in a process that serves a site in live" in ended.stderr


@pytest.mark.processes
def test_a_live_site_does_not_start_with_its_addresses() -> None:
    """``include("django_identity.sandbox.urls")`` refuses too."""
    installed = """INSTALLED_APPS=[
        "django.contrib.auth", "django.contrib.contenttypes", "oauth2_provider",
        "django_identity.sandbox",
    ], ROOT_URLCONF="django_identity.sandbox.urls" """
    code = (
        "import django; django.setup()\n"
        "from django.apps import apps; assert not list(apps.get_app_config('sandbox').get_models())"
        "\nfrom django.urls import resolve; resolve('/')"
    )
    ended = in_a_site(code, settings=installed)
    assert ended.returncode == 1
    assert "does not run in a process that serves a site in live" in ended.stderr


@pytest.mark.parametrize(
    ("setting", "path"),
    [
        ("INSTALLED_APPS", "django_identity.sandbox"),
        ("INSTALLED_APPS", "django_identity.sandbox.apps.SandboxConfig"),
        ("INSTALLED_APPS", "django_identity.testing"),
        *(("MIDDLEWARE", path) for path in MIDDLEWARE),
        ("MIDDLEWARE", "django_identity.testing.plugin.Anything"),
    ],
)
def test_a_site_that_lists_it_fails_its_check(setting: str, path: str) -> None:
    """An error names the setting; the sandbox's tables are not made in the site's database."""
    listed = override_settings(**{setting: [*getattr(settings, setting), path]})
    with listed:
        found = [each for each in run_checks() if each.id == "django_identity.E013"]
    assert len(found) == 1
    assert isinstance(found[0], Error)
    assert setting in found[0].msg


def test_other_names_pass_the_check() -> None:
    """A site's own app may be called so, and the package itself is welcome."""
    assert not [each for each in run_checks() if each.id == "django_identity.E013"]
    with override_settings(MIDDLEWARE=["django_identity.sandboxes.Middleware"]):
        assert not [each for each in run_checks() if each.id == "django_identity.E013"]
