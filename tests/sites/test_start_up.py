"""What a site pays for at its start."""

from __future__ import annotations

import os
import subprocess
import sys

from tests.sites.running import ROOT

PRINT = "import django, sys; django.setup(); print(*sys.modules)"
DEAR = {"celery", "kombu", "rest_framework", "joserfc", "django_identity.sandbox"}


def test_a_site_without_workers_and_api_loads_neither() -> None:
    """Celery and Django REST framework are installed, and are loaded by those who use them."""
    started = subprocess.run(
        [sys.executable, "-c", PRINT],
        cwd=ROOT,
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "tests.sites.plain.settings"},
        capture_output=True,
        text=True,
        check=True,
    )
    loaded = set(started.stdout.split())
    assert "django_identity.models" in loaded
    assert not DEAR & loaded
