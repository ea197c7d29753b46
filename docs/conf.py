"""Sphinx builds the pages of this folder: ``sphinx-build -n -W docs build/docs``.

The reference pages read the code, so Django is set up with few settings.
"""

from __future__ import annotations

import re
import sys
from importlib.metadata import version as version_of
from pathlib import Path

import django
from django.conf import settings
from sphinx.application import Sphinx

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(Path(__file__).parent / "_extensions")]

from django_identity.sandbox import sandbox_application  # noqa: E402  the path comes first

settings.configure(
    SECRET_KEY="for building the documentation only",  # noqa: S106  nothing is encrypted with it
    INSTALLED_APPS=[
        "django.contrib.auth",
        "django.contrib.contenttypes",
        "django.contrib.sessions",
        "django.contrib.messages",
        "django.contrib.admin",
        "django_identity",
    ],
    DJANGO_IDENTITY={"default": sandbox_application()},
    USE_TZ=True,
)
django.setup()

project = "django-identity"
author = "The django-identity authors"
project_copyright = f"2026, {author}"
release = version_of("django-identity")
version = ".".join(release.split(".")[:2])

extensions = ["myst_parser", "sphinx.ext.autodoc", "public_tables"]
myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence", "tasklist"]
exclude_patterns = [
    "_build",
    "interface.md",
    "comparison.md",
    "contributing.md",
]  # files, not pages
autodoc_typehints = "description"
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True}
python_use_unqualified_type_names = True
# Types of signatures that have no entry of their own.
nitpick_ignore_regex = [("py:class", ".*")]

html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_title = f"django-identity {release}"
html_copy_source = False
html_theme_options = {"source_edit_link": ""}

#: Files beside the pages. The site offers them as downloads.
FILES = re.compile(r"\]\((?=(?:interface|comparison|contributing|\.\./example_project/README)\.md)")


def setup(app: Sphinx) -> None:
    app.connect("source-read", _link_files)


def _link_files(_app: Sphinx, _page: str, source: list[str]) -> None:
    source[0] = FILES.sub("](path:", source[0])
