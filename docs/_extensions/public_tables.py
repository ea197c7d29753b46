"""The directive ``public-table``: tables that are read from the code."""

from __future__ import annotations

from collections.abc import Iterator

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective
from sphinx.util.typing import ExtensionMetadata

from django_identity.error_table import ERRORS

Row = tuple[str, ...]


PLACES = {"service": "the service", "site": "the site", "name": "…"}


def error_rows() -> Iterator[Row]:
    """Each code of the table of errors."""
    for code, row in ERRORS.items():
        sentence, hint = str(row.sentence) % PLACES, str(row.hint)
        yield f"`{code}`", str(row.status), f"`{row.recovery}`", sentence, hint


TABLES = {
    "errors": (("code", "status", "recovery", "what the person reads", "hint"), error_rows),
}


class PublicTable(SphinxDirective):
    """``public-table`` with one argument, the name of the table."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        header, rows = TABLES[self.arguments[0]]
        lines = [header, tuple("---" for _ in header), *rows()]
        text = StringList([f"| {' | '.join(line)} |" for line in lines], source=self.arguments[0])
        holder = nodes.container()
        self.state.nested_parse(text, self.content_offset, holder)
        return holder.children


def setup(app: Sphinx) -> ExtensionMetadata:
    app.add_directive("public-table", PublicTable)
    return {"version": "1", "parallel_read_safe": True}
