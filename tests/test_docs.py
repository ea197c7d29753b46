"""The documentation: every link leads somewhere, every block of code is code."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import textwrap
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path

import pytest
from django.core.management import get_commands
from django.template import engines

from django_identity.background import TaskName
from django_identity.conf import Application
from django_identity.credentials import RejectionReason
from django_identity.policy import IdentityPolicy
from django_identity.telemetry import LogEvent
from django_identity.testing import plugin
from tests.test_public_api import NAMES

ROOT = Path(__file__).parents[1]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*.md"))]
CODE = re.compile(r"^```.*?^```$|`[^`\n]*`", re.MULTILINE | re.DOTALL)
BLOCK = re.compile(r"^ *```(python|json|django|sh)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!https?:)([^)#]*)(?:#([^)]*))?\)")


def anchors_of(page: Path) -> set[str]:
    """The anchors that GitHub makes of a page's headings."""
    headings = re.findall(r"^#+ (.*)$", page.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-") for text in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_leads_somewhere(page: Path) -> None:
    """Pages, pictures and headings that a page links to exist."""
    text = CODE.sub("", page.read_text("utf-8"))
    for path, anchor in LINK.findall(text):
        target = (page.parent / path) if path else page
        assert target.exists(), path
        assert not anchor or anchor in anchors_of(target), f"{path}#{anchor}"


def python(text: str) -> None:
    """Compile the block. A page may show the keys of a dict alone."""
    try:
        ast.parse(text)
    except SyntaxError:
        ast.parse(f"{{\n{text}\n}}")


def shell(text: str) -> None:
    subprocess.run(["bash", "-n"], input=text.encode(), check=True)


COMPILERS: dict[str, Callable[[str], object]] = {
    "python": python,
    "json": json.loads,
    "django": lambda text: engines["django"].from_string(text),
    "sh": shell,
}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_block_of_code_compiles(page: Path) -> None:
    """Python, JSON, Django templates and shell."""
    for kind, text in BLOCK.findall(page.read_text("utf-8")):
        COMPILERS[kind](textwrap.dedent(text))


#: Pages for people who change the package, or who ask what proves a defence.
FOR_MAINTAINERS = {"contributing.md", "interface.md", "security.md", "CONTRIBUTING.md"}


@pytest.mark.parametrize(
    "page", [page for page in PAGES if page.name not in FOR_MAINTAINERS], ids=lambda page: page.name
)
def test_a_page_for_users_names_no_test_of_ours(page: Path) -> None:
    """They say what holds. Which test proves it stands on the page about security."""
    own = {path.name for path in (ROOT / "tests").rglob("test_*.py")}
    assert not own & set(re.findall(r"test_\w+\.py", page.read_text("utf-8")))


# Every public name has an entry in the reference


def entries(page: str) -> str:
    return (ROOT / "docs" / page).read_text("utf-8")


@pytest.mark.parametrize(
    "name", [f"{module}.{name}" for module, names in NAMES.items() for name in names.split()]
)
def test_public_names_are_on_the_reference_page(name: str) -> None:
    """By a directive, which the documentation's build resolves."""
    assert re.search(rf"auto\w+:: {re.escape(name)}$", entries("reference.md"), re.MULTILINE)


@pytest.mark.parametrize(
    ("page", "names"),
    [
        ("settings.md", {field.name.upper() for field in fields(Application)} - {"ALIAS"}),
        ("log-events.md", {str(event) for event in LogEvent}),
        ("credentials.md", {str(reason) for reason in RejectionReason}),
        ("policy.md", {name for name in vars(IdentityPolicy) if not name.startswith("_")}),
        ("operations.md", {str(task) for task in TaskName}),
        ("testing.md", {name for name in vars(plugin) if name.startswith("identity_")}),
        ("commands.md", {name for name, app in get_commands().items() if app == "django_identity"}),
    ],
)
def test_other_public_names_are_on_their_page(page: str, names: set[str]) -> None:
    """Settings, log events, rejection reasons, hooks, tasks, fixtures, commands."""
    assert not {name for name in names if not re.search(rf"\b{re.escape(name)}\b", entries(page))}
