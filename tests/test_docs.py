"""What the documentation names exists, what exists is named, and its code is code."""

import ast
import csv
import inspect
import json
import re
import runpy
import subprocess
import textwrap
from dataclasses import fields
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest
from django.apps import apps
from django.core.management import get_commands
from django.template import engines
from django.urls import URLPattern

import django_identity
from django_identity import urls
from django_identity.api import urls as api_urls
from django_identity.conf import Application
from django_identity.credentials import RejectionReason
from django_identity.logs import LogEvent
from django_identity.policy import IdentityPolicy
from django_identity.testing import plugin
from tests.test_public_api import NAMES

ROOT = Path(__file__).parents[1]
written = runpy.run_path(str(ROOT / "docs" / "_ext" / "written.py"))["written"]
PAGES = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")]
EACH_PAGE = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
CHECK_ID = re.compile(r"\b[EW]\d{3}\b")
LINK = re.compile(r"\]\((?!https?:)([^)#\s]*)(?:#([^)\s]+))?\)")
TEST = re.compile(r"([\w/]+\.py)::(\w+)")
OURS = re.compile(
    r"^ *from (django_identity[\w.]*) import (?:\(\n([^)]*)\)|(.+))$",
    re.MULTILINE,
)
BLOCK = re.compile(
    r"^ *```(python|json|django|html|sh)\n(.*?)^ *```$",
    re.MULTILINE | re.DOTALL,
)


@cache
def text_of(page: Path) -> str:
    """The page as it is published, with what it includes."""
    return written(page.read_text("utf-8"))


@cache
def docs() -> str:
    return "\n".join(text_of(page) for page in PAGES if page.parent.name == "docs")


def python_of(page: Path) -> list[str]:
    blocks = BLOCK.findall(text_of(page))
    return [textwrap.dedent(text) for kind, text in blocks if kind == "python"]


NAMED = {
    "settings": {field.name.upper() for field in fields(Application)},
    "log events": {str(event) for event in LogEvent},
    "rejection reasons": {str(reason) for reason in RejectionReason},
    "hooks": {name for name in vars(IdentityPolicy) if not name.startswith("_")},
    "fixtures": {name for name in vars(plugin) if name.startswith("identity_")},
    "commands": {
        name for name, app in get_commands().items() if app == "django_identity"
    },
    "addresses": {
        each.name
        for each in (*urls.urlpatterns, *api_urls.urlpatterns)
        if isinstance(each, URLPattern) and each.name
    },
    "public names": {
        f"from {module} import {name}"
        for module in NAMES
        for name in NAMES[module].split()
    },
    "models": {
        model.__name__
        for model in apps.get_app_config("django_identity").get_models()
        if not model._meta.proxy
    },
}


@pytest.mark.parametrize("kind", NAMED)
def test_every_public_name_is_in_the_documentation(kind):
    words = {*re.findall(r"\w+", docs())}
    # Names of several words.
    unfound = [re.escape(name) for name in NAMED[kind] - words]
    assert [name for name in unfound if not re.search(rf"\b{name}\b", docs())] == []


def test_every_system_check_is_a_row():
    """Once, and no row is about a check that is gone."""
    package = Path(django_identity.__file__).parent
    sources = [path.read_text("utf-8") for path in package.glob("c[ho]*/*.py")]
    used = {*CHECK_ID.findall("".join(sources))}
    rows = re.findall(r"^\| `django_identity\.([EW]\d{3})`", docs(), re.MULTILINE)
    assert sorted(rows) == sorted(used)


def anchors_of(page: Path) -> set[str]:
    """The headings, as GitHub and Sphinx spell them."""
    text = text_of(page) if page in PAGES else ""
    texts = re.findall(r"^#+ (.+)", BLOCK.sub("", text), re.MULTILINE)
    return {re.sub(r"[^\w\s-]", "", text.lower()).replace(" ", "-") for text in texts}


@EACH_PAGE
def test_every_link_leads_to_a_file_and_a_heading(page):
    for path, anchor in LINK.findall(text_of(page)):
        target = page.parent / path if path else page
        assert target.exists(), path
        assert not anchor or anchor in anchors_of(target), f"{path}#{anchor}"


@EACH_PAGE
def test_every_block_of_code_compiles(page):
    shell = ""
    for kind, text in BLOCK.findall(text_of(page)):
        code = textwrap.dedent(text)
        if kind == "python":
            try:
                ast.parse(code)
            except SyntaxError:
                ast.parse(f"{{\n{code}\n}}")  # the keys of a dict alone
        elif kind == "json":
            json.loads(code)
        elif kind == "sh":
            shell += code
        else:
            engines["django"].from_string(code)
    subprocess.run(["bash", "-n"], input=shell.encode(), check=True)


@EACH_PAGE
def test_every_import_of_a_block_leads_to_a_name(page):
    for module, below, beside in OURS.findall("\n".join(python_of(page))):
        for name in re.findall(r"\w+", below or beside):
            imported = import_module(module)
            assert hasattr(imported, name) or import_module(f"{module}.{name}")


def test_each_statement_of_the_interface_names_a_test_of_each_half():
    """Or says that the statement is not this half's; every test that is named exists."""
    with (ROOT / "tests" / "interface.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [int(row["n"]) for row in rows] == list(range(1, 153))
    for row in rows:
        halves = [row["package"], row["sandbox"]]
        named = [each for each in halves if each != "not ours"]
        tests = [TEST.fullmatch(each) for each in (*named, *row["others"].split())]
        assert named
        assert all(test and test[2] in names_in(test[1]) for test in tests), row["n"]


@cache
def names_in(file: str) -> set[str]:
    path = Path(__file__).parent / file
    tree = ast.parse(path.read_text("utf-8")) if path.exists() else ast.Module([], [])
    return {each.name for each in tree.body if isinstance(each, ast.FunctionDef)}


@EACH_PAGE
def test_every_policy_overrides_what_the_package_calls(page):
    """With the same arguments: no check finds a misspelt method."""
    for text in python_of(page):
        if "(IdentityPolicy)" not in text:
            continue
        body = ast.parse(text).body
        [policy] = [each for each in body if isinstance(each, ast.ClassDef)]
        names = {"IdentityPolicy": IdentityPolicy, "_": str}
        exec(compile(ast.Module([policy], []), page.name, "exec"), names)
        own = [name for name in vars(names["Policy"]) if not name.startswith("__")]
        for name in own:
            original = getattr(IdentityPolicy, name)
            if callable(original):
                override = getattr(names["Policy"], name)
                expected = inspect.signature(original).parameters
                assert [*inspect.signature(override).parameters] == [*expected], name
