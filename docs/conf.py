"""Sphinx builds the pages of this folder: ``sphinx-build -n -W docs build/docs``.

The reference and the table of errors are read from the code: ``_ext/written.py``.
"""

from __future__ import annotations

import re
import sys
from importlib.metadata import version as version_of
from pathlib import Path

from sphinx.application import Sphinx

project = "django-identity"
author = "The django-identity authors"
project_copyright = f"2026, {author}"
release = version_of("django-identity")
version = ".".join(release.split(".")[:2])

sys.path.insert(0, str(Path(__file__).parent / "_ext"))
extensions = ["myst_parser", "written"]
myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence", "tasklist"]
exclude_patterns = ["_build", "_ext"]

html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_title = f"django-identity {release}"
html_copy_source = False
html_theme_options = {"source_edit_link": ""}

#: Files beside the pages. The site offers them as downloads.
FILES = re.compile(r"\]\((?=\.\./example_project/README\.md)")


def setup(app: Sphinx) -> None:
    app.connect("source-read", _link_files)


def _link_files(_app: Sphinx, _page: str, source: list[str]) -> None:
    source[0] = FILES.sub("](path:", source[0])
