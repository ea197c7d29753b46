"""The drill finds each broken promise of a small shop, and names its cause or its place."""

import os
import re
import subprocess
import sys

import pytest

from example_project.demo.processes import ROOT

#: What ``$SITE_BREAKS`` breaks -> what is found.
FOUND = {
    "cached": r"`/bar/` stays in a cache for 600 s: `.*UpdateCacheMiddleware`",
    "history": r"`shop.History.name` still has something of an erased person",
    "deleted": r"`shop.Order.name` still has something of an erased person",
    "subclass": r"`/export/` is open: `Export.dispatch\(\)` answers before the gate",
    "user": r"`/bar/` is open: `request.user` .*tests.sites.drilled.middleware.replaced_user",
    "recreated": r"an account is made again after an erasure, by a receiver of a signal",
    "template": r"`/wine/` is hidden by a template alone: its view has no gate",
    "file": r"the file `cards/2.txt` is still there when its person is erased",
    "unique": r"an erasure waits: .*policy.py, line \d+: UNIQUE .*: shop_letter.email",
    "payload": r"`shop.EventLog.payload` still has something of an erased person",
    "session": r"`/bar/` is open: the session is not over, by tests.sites.drilled.sessions",
    "name": r"`auth.User.first_name` still has something of an erased person",
    "beside": r"`/export/` is open beside `/vault/`: the view tests.sites.drilled.urls.vault",
}


def drilled(breaks: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The drill of the shop that breaks this promise."""
    env = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "tests.sites.drilled.settings",
        "SITE_BREAKS": breaks,
    }
    command = [sys.executable, "-m", "django", "identity_drill", *arguments]
    return subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=300)


@pytest.mark.parametrize("breaks", ["", "raising"])
def test_a_shop_that_keeps_its_promises_is_clean(breaks: str) -> None:
    """One with a receiver that raises an error, too."""
    said = drilled(breaks, "--fail-on-untried")
    assert said.returncode == 0, said.stdout + said.stderr


@pytest.mark.parametrize("breaks", FOUND)
def test_a_broken_promise_is_found(breaks: str) -> None:
    """Exit 1, and nothing but what is broken."""
    said = drilled(breaks)
    found = re.findall(r"^found: (.*)$", said.stdout, re.MULTILINE)
    assert said.returncode == 1, said.stdout + said.stderr
    assert any(re.match(FOUND[breaks], sentence) for sentence in found), found
