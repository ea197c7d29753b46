"""The catalogues hold what the code says (gettext's programs read it)."""

import os
import shutil
import subprocess
import sys

import pytest

from tests.test_translations import CATALOGUES, LANGUAGES


@pytest.mark.skipif(shutil.which("xgettext") is None, reason="needs gettext")
@pytest.mark.parametrize("locale", CATALOGUES, ids=["app", "example"])
def test_makemessages_changes_nothing(locale, tmp_path):
    """On the unchanged tree, so that after a change a translator sees that one alone."""
    unread = shutil.ignore_patterns("__pycache__", "sandbox", "static")
    copied = shutil.copytree(locale.parent, tmp_path / "copy", ignore=unread)
    command = ["-m", "django", "makemessages", "--all", "--no-location", "--no-wrap"]
    env = {**os.environ, "DJANGO_SETTINGS_MODULE": ""}
    subprocess.run(
        [sys.executable, *command], cwd=copied, env=env, check=True, capture_output=True
    )
    for language in LANGUAGES:
        name = f"{language}/LC_MESSAGES/django.po"
        assert (copied / "locale" / name).read_text() == (locale / name).read_text()
