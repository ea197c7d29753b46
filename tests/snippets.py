"""The code of the documentation, run as it stands there.

A block below the comment ``<!-- run: NAME -->`` has that name.
"""

import re
from functools import cache
from pathlib import Path
from types import FunctionType, ModuleType

DOCS = Path(__file__).parents[1] / "docs"
BLOCK = re.compile(r"^<!-- run: (\w+) -->\n```\w+\n(.*?)^```", re.MULTILINE | re.DOTALL)


def blocks_of(page: str) -> dict[str, str]:
    """Each named block of the page."""
    return dict(BLOCK.findall((DOCS / page).read_text("utf-8")))


def text_of(name: str, *, page: str = "beside.md") -> str:
    """The block with this name."""
    return blocks_of(page)[name]


@cache
def module_of(name: str, *, page: str = "beside.md") -> ModuleType:
    """What the block defines, as a module of its own. A receiver in it connects once."""
    module = ModuleType(f"docs_{page.removesuffix('.md')}_{name}")
    exec(compile(text_of(name, page=page), f"{page}: {name}", "exec"), vars(module))
    return module


def examples_of(*names: str, page: str) -> dict[str, FunctionType]:
    """The tests in these blocks, by their names."""
    defined = [
        each for name in names for each in vars(module_of(name, page=page)).items()
    ]
    return {
        name: each
        for name, each in defined
        if isinstance(each, FunctionType) and name.startswith("test_")
    }
