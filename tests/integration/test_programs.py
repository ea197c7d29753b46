"""The demo, the quick start of the README, and gettext's programs."""

import os
import re
import shutil
import socket
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from example_project.demo.processes import HOST, free_port
from tests.sandbox.receiver import until
from tests.test_translations import APP, CATALOGUES, LANGUAGES, messages_of

ROOT = Path(__file__).resolve().parent.parent.parent
CHECK = [sys.executable, "manage.py", "demo", "--check"]


def surroundings() -> dict[str, Any]:
    env = {**os.environ, "DJANGO_SETTINGS_MODULE": "example_project.settings"}
    return {"cwd": ROOT, "env": env, "text": True}


def test_the_whole_walk_holds():
    """Over real sockets, with exit code 0. It says how soon the site obeyed each event."""
    how = {"capture_output": True, "timeout": 900, "check": False}
    walked = subprocess.run(CHECK, **surroundings(), **how)
    assert walked.returncode == 0, walked.stdout + walked.stderr
    assert walked.stdout.count("ok  ") >= 45
    assert len(re.findall(r"ok  .*, \d+ ms later\n", walked.stdout)) == 5
    for said in (
        "ok  pasted with words around it: whose code it is\n",
        "ok  verified there, a new code opens /loans/\n",
        "and left a receipt",
        "nothing in the site's database names the person",
        "ok  the worker re-fetched the claims when they were due\n",
    ):
        assert said in walked.stdout


def test_a_walk_that_is_stopped_did_not_hold():
    """Whoever runs it in CI asks for its exit code."""
    port = free_port()
    stopped = [*CHECK, "--sandbox-port", str(port)]
    with subprocess.Popen(stopped, **surroundings(), stdout=subprocess.PIPE) as walking:
        until(lambda: is_taken(port), seconds=120)
        walking.terminate()
        assert walking.stdout is not None
        said = walking.stdout.read()
    assert walking.returncode == 1
    assert "All of it holds" not in said
    assert not is_taken(port)


def is_taken(port: int) -> bool:
    with closing(socket.socket()) as probe:
        return probe.connect_ex((HOST, port)) == 0


README = (Path(__file__).parents[2] / "README.md").read_text("utf-8")
SETTINGS, URLS = re.findall(r"^```python\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
#: What a visitor of the gated page meets.
VISIT = """
from django.test import Client
from django.conf import settings
from django.shortcuts import resolve_url
client = Client(headers={"host": "localhost"})
page = client.get("/bar/", follow=True)
local = resolve_url(settings.IDENTITY_LOCAL_SIGN_IN_URL)
print(page.status_code, page.redirect_chain[0][0], "18 or older" in page.content.decode())
print(f'"{local}?next' in page.content.decode(), client.get(local).status_code)
"""


def test_the_quick_start_works_pasted(tmp_path):
    """With the two blocks the checks are silent, and no page leads to an error."""
    strange = {"DJANGO_SETTINGS_MODULE", "DATABASE_URL", "CELERY_BROKER_URL"}
    env = {name: value for name, value in os.environ.items() if name not in strange}

    def run(*command: str) -> str:
        return subprocess.run(
            [sys.executable, *command], cwd=tmp_path, env=env, check=True, capture_output=True,
            text=True,
        ).stdout  # fmt: skip

    run("-m", "django", "startproject", "shop", ".")
    for name, block in (("settings", SETTINGS), ("urls", URLS)):
        with (tmp_path / "shop" / f"{name}.py").open("a") as file:
            file.write(block)

    assert "no issues" in run("manage.py", "check")
    run("manage.py", "migrate", "-v", "0")
    seen = run("manage.py", "shell", "-v", "0", "-c", VISIT)
    gated, for_passwords = seen.splitlines()
    assert gated == "200 /identity/login/?next=%2Fbar%2F&missing=age_over_18 True"
    assert for_passwords == "True 200"


@pytest.mark.parametrize("locale", CATALOGUES, ids=lambda locale: locale.parent.name)
def test_the_catalogues_have_every_text_of_the_code(locale, tmp_path):
    """And no other; after a change run ``makemessages`` (CONTRIBUTING.md)."""
    copy = tmp_path / locale.parent.name
    # The sandbox is in English.
    left_out = ["__pycache__", *(["sandbox"] if locale == APP else [])]
    shutil.copytree(locale.parent, copy, ignore=shutil.ignore_patterns(*left_out))
    env = {
        name: os.environ[name]
        for name in os.environ
        if name != "DJANGO_SETTINGS_MODULE"
    }
    make = ["makemessages", "--all", "--no-location", "--no-wrap"]
    subprocess.run(
        [sys.executable, "-m", "django", *make], cwd=copy, env=env, check=True
    )

    for language in LANGUAGES:
        made = messages_of(copy / "locale", language)
        assert made.keys() == messages_of(locale, language).keys()
