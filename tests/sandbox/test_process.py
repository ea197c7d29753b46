"""The command: its start, its options, its refusals; and the site that every sandbox knows."""

import os
import sqlite3
import ssl
import subprocess
import sys
from contextlib import closing

import httpx
import pytest
import trustme

from django_identity.sandbox import sandbox_application
from tests.sandbox.driver import ADA, TLS, Application, Person, Pkce, Sandbox, started
from tests.sandbox.receiver import Receiver

pytestmark = pytest.mark.integration

GIVEN = sandbox_application()


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *map(str, arguments)]
    how = {"capture_output": True, "text": True, "timeout": 120}
    return subprocess.run(command, **how, check=False)


def ended(*options: object) -> str:
    """What the command says when it does not start."""
    result = run("-m", "django_identity.sandbox", *options)
    assert result.returncode == 2
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
    return result.stderr


def test_a_busy_port_says_what_to_do(sandbox):
    """The message names another port, and the line of settings that goes with it."""
    said = ended("--port", sandbox.port)
    assert f"Cannot listen on 127.0.0.1:{sandbox.port}" in said
    other = sandbox.port + 1
    assert f"identity-sandbox --port {other}" in said
    assert f'DJANGO_IDENTITY = sandbox_application("http://127.0.0.1:{other}")' in said
    assert "--site URL" in said


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--port=70000"], "--port"),
        (["--site=shop"], "an address is like"),
        (["--token-subject=email"], "--token-subject"),
        (["--tls-key=x"], "needs --tls-cert"),
        ([f"--tls-cert={__file__}", "--tls-key=/no/such/key"], "/no/such/key"),
        ([f"--tls-cert={__file__}"], "cannot be used"),
        (["trigger"], "unrecognized arguments: trigger"),
    ],
)
def test_an_unusable_option_is_explained(options, said):
    """The message names it, and the exit code is 2."""
    assert said in ended("--port=0", *options)


def test_every_switch_is_an_option_of_the_command():
    """The help lists them under the name of the command."""
    asked = run("-m", "django_identity.sandbox", "--help")
    assert asked.stdout.startswith("usage: identity-sandbox [options]")
    chosen = {"token_subject": "sub", "users_me": False, "claim_values": "bare"}
    options = ["--token-subject=sub", "--no-users-me", "--claim-values=bare"]
    with started(*options) as sandbox:
        assert sandbox.control("GET", "switches").items() >= chosen.items()


def test_a_kept_database_survives_a_restart(tmp_path, monkeypatch):
    """People, applications and keys are there again, and who was deleted is not.

    A database of another version is refused. Without one, the temporary folder is removed.
    """
    path = tmp_path / "kept.sqlite3"
    with started("--database", str(path)) as first:
        first.control("POST", f"users/{ADA}/deletion")
        person, application = Person(first, verified=True), Application(first)
        kid = first.control("GET", "keys")["signing"]
    with started("--database", str(path)) as second:
        person.sandbox = application.sandbox = second
        person.browser = second.open_browser()
        assert person.tokens_for(application)["access_token"]
        assert second.control("GET", "keys")["signing"] == kid
        assert second.control("GET", f"users/{ADA}")["deletion_requested"]
    with closing(sqlite3.connect(path)) as database:
        database.execute("DROP TABLE sandbox_notice")
    assert "another version" in ended("--port=0", "--database", path)
    (emptied := tmp_path / "tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(emptied))
    with started():
        assert os.listdir(emptied)

    assert os.listdir(emptied) == []


def test_it_serves_https_with_a_given_certificate(tmp_path, monkeypatch):
    """Clients must trust its authority; events reach a site of the one in SSL_CERT_FILE."""
    ca_file, server_file = tmp_path / "ca.pem", tmp_path / "server.pem"
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(ca_file))
    issued = authority.issue_cert("localhost", "127.0.0.1")
    issued.private_key_and_cert_chain_pem.write_to_path(str(server_file))
    monkeypatch.setenv("SSL_CERT_FILE", str(ca_file))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(server_file)
    with (
        Receiver(context) as receiver,
        started("--tls-cert", str(server_file)) as secure,
    ):
        assert secure.control("GET", "health") == {"status": "ready"}
        assert secure.origin.startswith("https://")
        with pytest.raises(httpx.ConnectError):
            httpx.get(secure.origin, verify=TLS)
        secure.control("POST", "faults", kind="drop", endpoint="jwks")
        with pytest.raises(httpx.RemoteProtocolError):
            secure.client.get("/.well-known/jwks.json")
        assert secure.client.get("/.well-known/jwks.json").status_code == 200
        application = Application(secure)
        application.receive_at(receiver.url)
        receiver.is_coming = secure.is_sending
        Person(secure).consent_to(application)
        assert receiver.wait_for(1)[0]["event_type"] == "consent.granted"


def local_site(sandbox: Sandbox) -> Application:
    """The application of every sandbox."""
    known = sandbox.control("GET", "applications")
    (named,) = [each for each in known if each["name"] == "Local site"]
    client = {"client_id": GIVEN["CLIENT_ID"], "client_secret": GIVEN["CLIENT_SECRET"]}
    return Application(sandbox, made={**named, "test": client})


def sign_in_at(site: str, sandbox: Sandbox) -> int:
    """Sign somebody in at the local site; the status of the refusal, or of the exchange."""
    application, pkce, back = local_site(sandbox), Pkce(), f"{site}/identity/callback/"
    url = application.authorization_url(pkce, redirect_uri=back)
    answer = Person(sandbox).decide(url)
    if answer.status_code != 200:
        return answer.status_code
    code = httpx.URL(answer.json()["callback"]).params["code"]
    return application.redeem(code, pkce, redirect_uri=back).status_code


def test_every_sandbox_knows_the_local_site(sandbox):
    for site in ("http://127.0.0.1:8000", "http://localhost:8000"):
        assert sign_in_at(site, sandbox) == 200
    assert sign_in_at("http://127.0.0.1:3000", sandbox) == 400


def test_events_go_to_every_site_that_is_named(tmp_path):
    """A kept database remembers them. Each has its own retries."""
    database = ("--database", str(tmp_path / "kept.sqlite3"))
    with Receiver() as first, Receiver() as second:
        sites = [f"http://127.0.0.1:{each.server_port}" for each in (first, second)]
        options = [option for site in sites for option in ("--site", site)]
        second.answers = [500]
        for given, counts in ((options, (1, 2)), ([], (2, 3))):
            with started(*database, *given) as sandbox:
                assert sign_in_at(sites[0], sandbox) == 200
                Person(sandbox).consent_to(local_site(sandbox))
                for receiver, count in zip((first, second), counts, strict=True):
                    receiver.wait_for(count)
        assert first.requests[0].is_signed_with(GIVEN["WEBHOOK_SECRETS"][0])


SITE = """
from django.conf import settings
settings.configure(
    DJANGO_IDENTITY={"default": {"ENVIRONMENT": "live"}}, SECRET_KEY="x", ALLOWED_HOSTS=["*"],
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}},
    MIDDLEWARE=["django_identity.sandbox.middleware.SandboxMiddleware"], INSTALLED_APPS=[
        "django.contrib.auth", "django.contrib.contenttypes", "oauth2_provider",
        "django_identity.sandbox"],
    ROOT_URLCONF="django_identity.sandbox.urls",
)
"""
PARTS = {
    "the command": "from django_identity.sandbox.__main__ import main; raise SystemExit(main([]))",
    "its set-up": "from django_identity.sandbox import server; server.start_django(sites=None)",
    "its middleware": "from django.core.wsgi import get_wsgi_application as start; start()",
    "its addresses": "import django; django.setup(); from django.urls import resolve; resolve('/')",
}


@pytest.mark.parametrize("code", PARTS.values(), ids=PARTS)
def test_no_part_of_it_runs_in_a_sites_process(code):
    result = run("-c", SITE + code)
    assert result.returncode in (1, 2)
    assert "does not run in a process that has a site's settings" in result.stderr


def test_the_settings_helper_needs_neither_django_nor_the_extra():
    """A settings module imports it before Django is set up. The command says what to install."""
    hidden = "import sys\nfor name in ('oauth2_provider', 'sd_jwt'): sys.modules[name] = None\n"
    helper = (
        "from django_identity.sandbox import sandbox_application; sandbox_application()\n"
        "assert not {'django', 'httpx'} & sys.modules.keys()\n"
        "from django_identity.sandbox.__main__ import main; sys.exit(main(['--port=0']))"
    )
    result = run("-c", hidden + helper)
    assert result.returncode == 2
    assert result.stderr.count("\n") == 1
    assert 'needs the extra "sandbox"' in result.stderr
