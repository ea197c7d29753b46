"""The code of the documentation, run as it stands there.

A block below the comment ``<!-- run: NAME -->`` in ``docs/beside.md`` has that name.
"""

import re
from functools import cache
from pathlib import Path
from types import ModuleType

PAGE = Path(__file__).parents[1] / "docs" / "beside.md"
BLOCK = re.compile(r"^<!-- run: (\w+) -->\n```\w+\n(.*?)^```", re.MULTILINE | re.DOTALL)


def text_of(name: str) -> str:
    """The block with this name."""
    return dict(BLOCK.findall(PAGE.read_text("utf-8")))[name]


@cache
def module_of(name: str) -> ModuleType:
    """What the block defines, as a module of its own. A receiver in it connects once."""
    module = ModuleType(f"docs_beside_{name}")
    exec(compile(text_of(name), f"{PAGE.name}: {name}", "exec"), vars(module))
    return module
