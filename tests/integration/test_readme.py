"""The quick start of the README: pasted into a new project, it works."""

import os
import re
import subprocess
import sys
from pathlib import Path

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
