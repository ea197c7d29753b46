"""The drill of the example project: clean, in a world of its own."""

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
STEPS = {
    "nobody", "local", "unproven", "proven", "revoked", "ended", "run out", "disconnected",
    "erased",
}  # fmt: skip
GATED = {"/adults/", "/residents/", "/loans/", "/leave/", "/api/circles/"}


def drilled(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The example project's drill. Its own database is a file that nobody has made."""
    env = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "example_project.settings",
        "DATABASE_URL": f"sqlite:///{folder / 'site.sqlite3'}",
        "CELERY_BROKER_URL": "redis://127.0.0.1:9/0",
        "CACHE_URL": "redis://127.0.0.1:9/1",
    }
    command = [sys.executable, "manage.py", "identity_drill", *arguments]
    return subprocess.run(
        command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=300
    )


def test_the_example_project_is_clean(tmp_path: Path) -> None:
    """Every address at every step, with neither database, broker nor cache of the site."""
    evidence = tmp_path / "drill.json"
    said = drilled(
        tmp_path, "--json", str(evidence), "--label", "v1", "--fail-on-untried"
    )
    assert said.returncode == 0, said.stdout + said.stderr
    assert said.stdout.splitlines()[-1] == "0 found, 0 not tried."
    assert not (tmp_path / "site.sqlite3").exists()

    seen = json.loads(evidence.read_text("utf-8"))
    assert seen["label"] == "v1"
    assert {(visit["address"], visit["step"]) for visit in seen["visits"]} == {
        (address, step) for address in GATED for step in STEPS
    }
    assert {visit["outcome"] for visit in seen["visits"]} == {"ok"}
    assert {
        visit["address"] for visit in seen["visits"] if visit["status"] == 200
    } == GATED
