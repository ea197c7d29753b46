"""Every statement about the key set that the documentation makes is pinned."""

from __future__ import annotations

import re
from pathlib import Path

HERE = Path(__file__).parent
DOCUMENT = HERE.parents[2] / "docs" / "security.md"
SECTION = re.compile(r"^## The rules of the key set$.*?(?=^## )", re.MULTILINE | re.DOTALL)


def test_the_documents_table_and_the_tests_name_each_other():
    """Each row names tests that exist, and every test stands in a row."""
    section = SECTION.search(DOCUMENT.read_text("utf-8"))[0]
    named = set(re.findall(r"`lifecycle/key_sets/(\w+\.py::\w+)`", section))
    written = {
        f"{path.name}::{name}"
        for path in HERE.glob("test_*.py")
        if path.name != Path(__file__).name
        for name in re.findall(r"^def (test_\w+)", path.read_text("utf-8"), re.MULTILINE)
    }
    assert named == written
