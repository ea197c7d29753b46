"""The directive ``public-table``: tables that are read from the code."""

from __future__ import annotations

from collections.abc import Iterator

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective
from sphinx.util.typing import ExtensionMetadata

from django_identity.exceptions import IdentityError

Row = tuple[str, ...]


def error_rows(kind: type[IdentityError] = IdentityError) -> Iterator[Row]:
    """Each error below ``kind``."""
    for child in kind.__subclasses__():
        if child.__module__ == IdentityError.__module__:
            yield (
                f"`{child.__name__}`",
                f"`{child.code}`",
                str(child.http_status),
                f"`{child.recovery}`",
                str(child.public_message),
            )
            yield from error_rows(child)


TABLES = {
    "errors": (("class", "code", "status", "recovery", "what the person reads"), error_rows),
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
