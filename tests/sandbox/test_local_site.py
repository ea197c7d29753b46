"""The sandbox needs no set-up: a development site is configured by one line."""

import subprocess
import sys
import tomllib
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from django.core.checks import run_checks
from django.test import override_settings

from django_identity.checks import conf, development
from django_identity.sandbox import sandbox_application
from tests.sandbox.driver import Application, Developer, Person, Pkce, Sandbox

ROOT = Path(__file__).resolve().parent.parent.parent
CALLBACKS = [f"http://{name}:8000/identity/callback/" for name in ("127.0.0.1", "localhost")]
GIVEN = sandbox_application()


def local_site(sandbox: Sandbox) -> Application:
    """The application that every sandbox knows, with the credentials that everybody knows."""
    site = Application.__new__(Application)
    site.sandbox = sandbox
    site.client_id, site.client_secret = GIVEN["CLIENT_ID"], GIVEN["CLIENT_SECRET"]
    return site


def sign_in(person: Person, site: Application, redirect_uri: str) -> int:
    """Sign ``person`` in at the local site; the status of the exchange."""
    pkce = Pkce()
    url = site.authorization_url(pkce, redirect_uri=redirect_uri)
    approved = person.sandbox.control("POST", "authorizations", url=url, user_id=person.user_id)
    code = parse_qs(urlsplit(approved["callback"]).query)["code"][0]
    return site.redeem(code, pkce, redirect_uri=redirect_uri).status_code


@pytest.mark.parametrize("redirect_uri", CALLBACKS)
def test_a_fresh_sandbox_signs_people_in_at_the_local_site(
    sandbox: Sandbox, person: Person, redirect_uri: str
) -> None:
    """Nothing was registered."""
    assert sign_in(person, local_site(sandbox), redirect_uri) == 200


def test_its_events_go_to_the_local_site(sandbox: Sandbox, person: Person) -> None:
    """At its webhook address."""
    site = local_site(sandbox)
    sandbox.control("POST", "deliveries/hold", client_id=site.client_id)
    person.consent_to(site)
    assert [each["event_type"] for each in site.deliveries()] == ["consent.granted"]
    registered = next(
        each
        for each in sandbox.control("GET", "applications")
        if each["clients"]["test"] == site.client_id
    )
    page = Developer(sandbox)
    page.sign_in()
    shown = page.open(f"/portal/applications/{registered['app_id']}").text
    assert "http://127.0.0.1:8000/identity/webhook/" in shown


@pytest.mark.processes
def test_another_address_can_be_named(tmp_path: Path) -> None:
    """``--site`` replaces the addresses, and a kept database takes the new one."""
    database = ("--database", str(tmp_path / "kept.sqlite3"))
    for options, address in [
        ((), "http://127.0.0.1:8000"),
        (("--site", "http://127.0.0.1:3000/"), "http://127.0.0.1:3000"),
        ((), "http://127.0.0.1:3000"),
    ]:
        with Sandbox(*database, *options) as sandbox:
            site, person = local_site(sandbox), Person(sandbox, verified=True)
            assert sign_in(person, site, f"{address}/identity/callback/") == 200
            assert len(sandbox.control("GET", "applications")) == 1


def test_the_settings_are_complete() -> None:
    """One line configures a site, and every check passes on a development machine."""
    with override_settings(DJANGO_IDENTITY={"default": sandbox_application()}):
        assert not conf.problems()
        assert conf.application().base_url == "http://127.0.0.1:9400/api/v1"
        assert "django_identity.E018" not in {each.id for each in run_checks()}
    elsewhere = sandbox_application("http://127.0.0.1:9500")
    assert elsewhere["AUTH_URL"] == "http://127.0.0.1:9500"
    assert elsewhere["SERVICE_ACCOUNT_URL"] == "http://127.0.0.1:9500/account/"


LIVE = {**GIVEN, "ENVIRONMENT": "live"}
OWN = {
    "ENVIRONMENT": "live",
    "BASE_URL": "https://service.example/api/v1",
    "AUTH_URL": "https://auth.example",
    "CLIENT_ID": "own",
    "CLIENT_SECRET": "a-secret-of-the-site-itself",
    "WEBHOOK_SECRETS": ["another-secret-of-the-site"],
}


@pytest.mark.parametrize(
    "applications",
    [
        {"default": LIVE},
        {"default": OWN, "try": GIVEN},
        {
            "default": {
                **OWN,
                "WEBHOOK_SECRETS": [*OWN["WEBHOOK_SECRETS"], *GIVEN["WEBHOOK_SECRETS"]],
            }
        },
        {"default": {**OWN, "CLIENT_SECRET": GIVEN["CLIENT_SECRET"]}},
    ],
    ids=["in live", "beside live", "its webhook secret in live", "its client secret in live"],
)
def test_a_check_keeps_it_out_of_live(applications: Mapping[str, Any]) -> None:
    """What everybody knows protects nobody."""
    with override_settings(DJANGO_IDENTITY=applications):
        assert "django_identity.E018" in {each.id for each in run_checks()}


def test_a_check_keeps_it_off_servers() -> None:
    """``check --deploy`` fails in whatever environment; a live site of its own passes."""
    with override_settings(DJANGO_IDENTITY={"default": GIVEN}):
        found = {each.id for each in run_checks(include_deployment_checks=True)}
    assert "django_identity.E018" in found
    with override_settings(DJANGO_IDENTITY={"default": OWN}):
        found = {each.id for each in run_checks(include_deployment_checks=True)}
    assert "django_identity.E018" not in found


def test_the_check_knows_the_values() -> None:
    """Both are written down twice: the sandbox imports nothing of the package, nor the reverse."""
    values = [GIVEN["CLIENT_ID"], GIVEN["CLIENT_SECRET"], *GIVEN["WEBHOOK_SECRETS"]]
    assert all(each.startswith(development.SANDBOX_VALUES) for each in values)


@pytest.mark.processes
def test_the_helper_is_light() -> None:
    """A settings module imports it before Django is set up, and without the sandbox's extra."""
    code = (
        "import sys\n"
        "for name in ('oauth2_provider', 'sd_jwt', 'jwcrypto'): sys.modules[name] = None\n"
        "from django_identity.sandbox import sandbox_application; sandbox_application()\n"
        "print([name for name in ('django', 'httpx') if name in sys.modules])"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=True
    )
    assert ended.stdout == "[]\n"


@pytest.mark.processes
@pytest.mark.parametrize("missing", ["oauth2_provider", "sd_jwt"])
def test_without_its_extra_it_says_what_to_install(missing: str) -> None:
    """One line, no traceback."""
    code = (
        f"import sys; sys.modules[{missing!r}] = None\n"
        "from django_identity.sandbox.__main__ import main; sys.exit(main(['--port=0']))"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=False
    )
    assert ended.returncode == 2
    assert 'pip install "django-identity[sandbox]"' in ended.stderr
    assert ended.stderr.count("\n") == 1


@pytest.mark.processes
def test_it_has_a_command_of_its_own() -> None:
    """``identity-sandbox`` starts what ``python -m django_identity.sandbox`` starts."""
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    module, _colon, name = scripts["identity-sandbox"].partition(":")
    assert callable(getattr(import_module(module), name))
