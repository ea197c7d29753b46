"""The documentation: every link leads somewhere, every block of code is code."""

from __future__ import annotations

import ast
import json
import re
import shutil
import subprocess
import sys
import textwrap
import tomllib
from collections.abc import Callable
from configparser import ConfigParser
from dataclasses import fields
from pathlib import Path

import pytest
import yaml
from django.apps import apps
from django.core.management import get_commands
from django.template import engines
from django.urls import URLPattern

from django_identity import urls
from django_identity.api import urls as api_urls
from django_identity.background import TaskName
from django_identity.conf import Application
from django_identity.credentials import RejectionReason
from django_identity.policy import IdentityPolicy
from django_identity.telemetry import LogEvent
from django_identity.testing import plugin
from tests.sites.table import SITES
from tests.test_public_api import NAMES

ROOT = Path(__file__).parents[1]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*.md"))]
CODE = re.compile(r"^```.*?^```$|`[^`\n]*`", re.MULTILINE | re.DOTALL)
BLOCK = re.compile(r"^ *```([^\n{]+)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
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


def console(text: str) -> None:
    """The commands, without what they print. A command goes on after a backslash."""
    shell("\n".join(re.findall(r"^\$ ((?:.*\\\n)*.*)$", text, re.MULTILINE)))


def template(text: str) -> None:
    engines["django"].from_string(text)


def braces(text: str) -> None:
    assert text.count("{") == text.count("}")


COMPILERS: dict[str, Callable[[str], object]] = {
    "python": python,
    "json": json.loads,
    "django": template,
    "html": template,
    "sh": shell,
    "console": console,
    "ini": ConfigParser().read_string,
    "yaml": yaml.safe_load,
    "nginx": braces,
    "text": str,  # a header of HTTP
}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_block_of_code_compiles(page: Path) -> None:
    """Each block says what it is: Python, JSON, a template, shell. None is left out."""
    written = page.read_text("utf-8")
    assert all(re.findall(r"^ *```(.*)$", written, re.MULTILINE)[::2])
    for kind, text in BLOCK.findall(written):
        COMPILERS[kind](textwrap.dedent(text))


def test_every_system_check_is_a_row() -> None:
    """Once, and no row is about a check that is gone."""
    told = re.findall(r"^\| `django_identity\.([EW]\d{3})`", entries("checks.md"), re.MULTILINE)
    sources = [*ROOT.glob("django_identity/checks/*.py"), *ROOT.glob("django_identity/conf/*.py")]
    used = {
        id_ for each in sources for id_ in re.findall(r"\b[EW]\d{3}\b", each.read_text("utf-8"))
    }
    assert sorted(told) == sorted(used)


def test_every_site_of_the_tests_is_a_row() -> None:
    """The page on compatibility says what to set for each of them."""
    rows = re.findall(r"^\|.*\|.*\|([^|]*)\|$", entries("compatibility.md"), re.MULTILINE)
    told = [name for row in rows for name in re.findall(r"`(\w+)`", row)]
    assert sorted(told) == sorted(site.name for site in SITES)


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


def url_names() -> set[str]:
    """The names in the namespace ``identity``, such as ``login`` and ``api:me``."""
    api = {f"api:{each.name}" for each in api_urls.urlpatterns}
    return api | {each.name for each in urls.urlpatterns if isinstance(each, URLPattern)}


@pytest.mark.parametrize(
    ("page", "names"),
    [
        ("settings.md", {field.name.upper() for field in fields(Application)} - {"ALIAS"}),
        ("log-events.md", {str(event) for event in LogEvent}),
        ("credentials.md", {str(reason) for reason in RejectionReason}),
        ("policy.md", {name for name in vars(IdentityPolicy) if not name.startswith("_")}),
        ("operations.md", {str(task) for task in TaskName}),
        ("testing.md", {name for name in vars(plugin) if name.startswith("identity_")}),
        ("urls.md", {f"identity:{name}" for name in url_names()}),
        ("commands.md", {name for name, app in get_commands().items() if app == "django_identity"}),
    ],
)
def test_other_public_names_are_on_their_page(page: str, names: set[str]) -> None:
    """Settings, log events, rejection reasons, hooks, tasks, fixtures, URLs, commands."""
    assert not {name for name in names if not re.search(rf"\b{re.escape(name)}\b", entries(page))}


# Privacy

#: Columns of most tables, which the page names once.
EVERYWHERE = {"id", "created_at", "updated_at", "application", "environment"}
#: Tables without a row about a person.
ABOUT_NOBODY = {"DailyTally", "JobRun"}


def test_the_privacy_page_has_every_column() -> None:
    """What is stored about people is on the page by model and column, and nothing else is."""
    page = entries("privacy.md")
    listed: dict[str, set[str]] = {}
    for model, columns in re.findall(r"^\|.*\| `(\w+)`: ([^|]+) \|", page, re.MULTILINE):
        listed.setdefault(model, set()).update(re.findall(r"`(\w+)`", columns))
    stored = {
        model.__name__: {field.name for field in model._meta.fields} - EVERYWHERE
        for model in apps.get_app_config("django_identity").get_models()
        if not model._meta.proxy and model.__name__ not in ABOUT_NOBODY
    }
    assert listed == stored
    assert all(f"`{name}`" in page for name in ABOUT_NOBODY)


# The package index shows README.md alone


def test_the_addresses_are_filled_in(tmp_path: Path) -> None:
    """Every link of the README becomes a page of the documentation, or the repository."""
    for name in ("README.md", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path)
    site, code = "https://docs.example/identity", "https://code.example/identity"

    subprocess.run([sys.executable, ROOT / ".ci/addresses", f"{site}/", code, tmp_path], check=True)

    links = re.findall(r"\]\(([^)]*)\)", (tmp_path / "README.md").read_text("utf-8"))
    pages = {link.removeprefix(f"{site}/").partition("#")[0] for link in links} - {code}
    assert len(pages) > 10
    for page in pages:
        folder, _, name = page.rpartition("/")
        source = f"images/{name}" if folder == "_images" else page.replace(".html", ".md")
        assert (ROOT / "docs" / source).exists(), page
    metadata = tomllib.loads((tmp_path / "pyproject.toml").read_text("utf-8"))["project"]
    assert metadata["urls"]["Documentation"] == f"{site}/"
    assert metadata["scripts"]
