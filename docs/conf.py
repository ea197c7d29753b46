"""Sphinx builds the pages of this folder: ``sphinx-build -n -W docs build/docs``.

The reference and the table of errors are read from the code: ``_ext/written.py``.
"""

from __future__ import annotations

import sys
from importlib.metadata import version as version_of
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.errors import ExtensionError

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

#: A page has the text of this file, so a link to the file leads to the page.
DEMO = "../example_project/README.md"


def setup(app: Sphinx) -> None:
    app.connect("source-read", _link_pages)
    app.connect("env-updated", _require_pages)


def _link_pages(_app: Sphinx, _page: str, source: list[str]) -> None:
    source[0] = source[0].replace(f"]({DEMO})", "](demo.md)")


def _require_pages(_app: Sphinx, env: BuildEnvironment) -> None:
    """A link to a page is a page, and never a download of its source."""
    if env.dlfiles:
        raise ExtensionError(f"Links to no page: {', '.join(env.dlfiles)}")
