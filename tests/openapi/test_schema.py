"""``docs/openapi.yaml`` describes the API as it is."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "openapi.yaml"
# In a process of its own: Django REST framework reads its setting when a view is imported.
MAKE = ("manage.py", "spectacular", "--settings", "tests.openapi.settings", "--fail-on-warn")


def test_the_document_is_what_the_code_says() -> None:
    """Make it anew with ``python manage.py spectacular --settings tests.openapi.settings``."""
    made = subprocess.run(
        [sys.executable, *MAKE], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert made.returncode == 0, made.stderr
    assert made.stdout == PAGE.read_text("utf-8")
