"""What a site pays for at its start."""

import os
import subprocess
import sys

import pytest

from tests.sites.running_site import ROOT

START = "import django, sys; django.setup();"
# Django loads every URL and its view at the first look-up of an address.
LOOK_UP = "from django.urls import reverse; reverse('identity:login');"
PRINT = "print(*sys.modules)"
DEAR = {"celery", "kombu", "rest_framework", "joserfc", "django_identity.sandbox"}


@pytest.mark.parametrize("first_request", ["", LOOK_UP], ids=["start", "first request"])
def test_a_site_without_workers_and_api_loads_neither(first_request):
    """A library is loaded by those who use it, and when they first do."""
    started = subprocess.run(
        [sys.executable, "-c", START + first_request + PRINT],
        cwd=ROOT,
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "tests.sites.plain.settings"},
        capture_output=True,
        text=True,
        check=True,
    )
    loaded = set(started.stdout.split())
    assert "django_identity.models" in loaded
    assert ("django_identity.views.sign_in" in loaded) == bool(first_request)
    assert not DEAR & loaded
