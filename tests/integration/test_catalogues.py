"""The catalogues hold what the code says (gettext's programs read it)."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.test_translations import APP, CATALOGUES, LANGUAGES, messages_of


@pytest.mark.parametrize("locale", CATALOGUES, ids=lambda locale: locale.parent.name)
def test_the_catalogues_have_every_text_of_the_code(
    locale: Path, tmp_path: Path
) -> None:
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
