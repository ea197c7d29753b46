"""Writes what the pages take from the code, when Sphinx reads them.

The line ``<!-- written: KIND … -->`` of a page becomes the text of its function in ``KINDS``. The
line above it is for readers of the file. Signatures are read from the source, so that every Python
writes the same.
"""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Iterator
from importlib import import_module
from typing import TYPE_CHECKING, Any

import django
from django.conf import settings

if TYPE_CHECKING:
    from sphinx.application import Sphinx

PART = re.compile(
    r"^(?:\(In the built pages\.\)\n)?<!-- written: (.+?) -->$",
    re.MULTILINE,
)
# In a docstring: code in two backticks, and a block of code below two colons.
INLINE = re.compile(r"``(.+?)``")
INDENTED = re.compile(r"::\n\n((?:    .*\n+)+)")
# A comment that describes the name below it.
DESCRIBED = re.compile(r"((?:^ *#: .*\n)+)^ *(\w+).* = .*$", re.MULTILINE)
# In plain text Sphinx would make one dash of two.
COMMAND = re.compile(r"(\bidentity_\w+(?: --[\w-]+)?)")
PLACES = {"service": "the service", "site": "the site", "name": "…"}
WIDTH = 88
Function = ast.FunctionDef | ast.AsyncFunctionDef


def written(page: str) -> str:
    """The text of a page, with each of its parts as it has to be."""

    def anew(found: re.Match[str]) -> str:
        kind, *arguments = found[1].split()
        return KINDS[kind](*arguments)

    return PART.sub(anew, page)


def reference(module: str, *names: str) -> str:
    """How each name of the module is called, what it does, and its public members."""
    return "\n\n".join(_entry(module, name, with_members=True) for name in names)


def words(module: str, *names: str) -> str:
    """What each name of the module is."""
    return "\n\n".join(_entry(module, name, with_members=False) for name in names)


def signals(module: str) -> str:
    """The names that have a comment above them."""
    source = inspect.getsource(import_module(module))
    return "\n".join(f"- `{name}`: {text}" for name, text in _described(source))


def errors() -> str:
    """The table of errors."""
    rows = [
        "| code | status | recovery | what the person reads | hint |",
        "|---|---|---|---|---|",
    ]
    for code, row in import_module("django_identity.exceptions.table").ERRORS.items():
        sentence = str(row.sentence) % PLACES
        rows.append(
            f"| `{code}` | {row.status} | `{row.recovery}` | {sentence} | {row.hint} |",
        )
    return "\n".join(rows)


def log_events() -> str:
    """The table of log events: the comment above each has its level, and when it is logged."""
    logs = import_module("django_identity.logs")
    rows = ["| event | level | when |", "|---|---|---|"]
    for name, text in _described(inspect.getsource(logs.LogEvent)):
        level, _, when = text.partition(" | ")
        rows.append(f"| `{logs.LogEvent[name]}` | {level} | {when} |")
    return "\n".join(rows)


def reasons() -> str:
    """The table of the checks of a credential."""
    kind = import_module("django_identity.credentials").RejectionReason
    rows = ["| reason | check |", "|---|---|"]
    for name, text in _described(inspect.getsource(kind)):
        rows.append(f"| `{kind[name]}` | {text} |")
    return "\n".join(rows)


def decisions() -> str:
    """The table of who is linked to which account."""
    module = import_module("django_identity.lifecycle.arriving.decisions")
    rows = [
        "| How they came | How the subject is linked | Then | The policy is asked |",
        "|---|---|---|---|",
    ]
    for arrival, of_arrival in module.DECISIONS.items():
        for subject, decision in of_arrival.items():
            if isinstance(decision, module.Refuse):
                then, asked = f"`{decision.code}`", ""
            else:
                then = module.Subject[decision.via.name]
                asked = ", ".join(f"`{each}`" for each in decision.asks)
            rows.append(f"| {arrival} | {subject} | {then} | {asked} |")
    return "\n".join(rows)


def switches() -> str:
    """The table of the sandbox's switches. The first value is the default."""
    module = import_module("django_identity.sandbox.switches")
    rows = ["| switch | values (default first) | meaning |", "|---|---|---|"]
    for name, switch in module.ALL.items():
        values = sorted(
            switch.metadata["values"],
            key=lambda each: each != switch.default,
        )
        shown = ", ".join(
            f"`{str(each).lower() if isinstance(each, bool) else each}`"
            for each in values
        )
        rows.append(f"| `{name}` | {shown} | {switch.metadata['help']} |")
    return "\n".join(rows)


def signs() -> str:
    """The table of rows that need somebody, as the doctor says them."""
    rows = ["| sign | rows | problem | remedy |", "|---|---|---|---|"]
    for sign in import_module("django_identity.instruments.signs.table").SIGNS:
        problem = "yes" if sign.level.name == "PROBLEM" else "no"
        remedy = COMMAND.sub(r"`\1`", sign.remedy)
        rows.append(f"| `{sign.name}` | {sign.message} | {problem} | {remedy} |")
    return "\n".join(rows)


def tree() -> str:
    """The tree of errors, as ``exceptions`` draws it."""
    drawn = str(import_module("django_identity.exceptions").__doc__)
    lines = [line for line in drawn.splitlines() if re.match(r"    \S|    [│├└]", line)]
    text = textwrap.dedent("\n".join(lines))
    return f"```text\n{text}\n```"


KINDS = {
    each.__name__: each
    for each in (
        reference,
        words,
        signals,
        errors,
        reasons,
        decisions,
        log_events,
        signs,
        switches,
        tree,
    )
}


def _entry(module: str, name: str, *, with_members: bool) -> str:
    named: Any = getattr(import_module(module), name)
    [node] = ast.parse(textwrap.dedent(inspect.getsource(named))).body
    shown = [f"from {module} import {name}"]
    members: list[str] = []
    if isinstance(node, Function):
        node.name = name
        shown += ["", "", _declaration(node, named)]
    elif isinstance(node, ast.ClassDef) and with_members:
        body = [textwrap.indent(each, "    ") for each in _body_of(node, named)]
        shown += ["", "", f"class {name}:", *body] if body else []
        members = list(_members_of(node, named))
    code = "\n".join(shown)
    parts = [
        f"### {name}",
        f"```python\n{code}\n```",
        _text_of(named),
        "\n".join(members),
    ]
    return "\n\n".join(part for part in parts if part)


def _body_of(node: ast.ClassDef, named: Any) -> Iterator[str]:
    """The fields of a data class, the members of an enumeration, or ``__init__``."""
    for each in node.body:
        if isinstance(each, ast.AnnAssign) and node.decorator_list:
            yield _unparsed(
                ast.AnnAssign(each.target, each.annotation, None, each.simple),
            )
        elif isinstance(each, ast.Assign) and hasattr(named, "__members__"):
            yield _unparsed(each)
        elif isinstance(each, Function) and each.name == "__init__":
            yield _declaration(each, named.__init__)


def _members_of(node: ast.ClassDef, named: Any) -> Iterator[str]:
    for name, text in _described(inspect.getsource(named)):
        yield f"- `{name}`: {text}"
    for each in node.body:
        text = isinstance(each, Function) and ast.get_docstring(each)
        if not text or each.name.startswith("_"):
            continue
        called = each.name
        function = getattr(named, each.name)
        if callable(function):
            called += f"({', '.join(_arguments_of(each, function, annotated=False))})"
        told = _in_markdown(text).replace("\n\n", "\n").replace("\n", "\n  ")
        yield f"- `{called}`: {told}"


def _described(source: str) -> Iterator[tuple[str, str]]:
    """Each name with the comment above it."""
    for comment, name in DESCRIBED.findall(source):
        lines = [line.strip().removeprefix("#: ") for line in comment.splitlines()]
        yield name, _in_markdown(" ".join(lines))


def _declaration(node: Function, function: Any) -> str:
    """The function without its body, in one line if it fits."""
    start = "async def" if isinstance(node, ast.AsyncFunctionDef) else "def"
    end = f" -> {_unparsed(node.returns)}: ..." if node.returns else ": ..."
    arguments = list(_arguments_of(node, function, annotated=True))
    if node.name == "__init__":
        arguments.insert(0, "self")
    line = f"{start} {node.name}({', '.join(arguments)}){end}"
    if len(line) <= WIDTH - 4:
        return line
    below = "".join(f"    {argument},\n" for argument in arguments)
    return f"{start} {node.name}(\n{below}){end}"


def _arguments_of(node: Function, function: Any, *, annotated: bool) -> Iterator[str]:
    """Each parameter as it is written, with the value of its default."""
    given = inspect.signature(inspect.unwrap(function)).parameters
    stars = {"VAR_POSITIONAL": "*", "VAR_KEYWORD": "**"}
    listed = node.args
    before = ""
    for each in (
        *listed.posonlyargs,
        *listed.args,
        listed.vararg,
        *listed.kwonlyargs,
        listed.kwarg,
    ):
        if each is None or each.arg in ("self", "cls"):
            continue
        parameter = given[each.arg]
        kind = parameter.kind.name
        if kind == "KEYWORD_ONLY" and before not in ("KEYWORD_ONLY", "VAR_POSITIONAL"):
            yield "*"
        if before == "POSITIONAL_ONLY" != kind:
            yield "/"
        before = kind
        text = f"{stars.get(kind, '')}{each.arg}"
        equals = "="
        if annotated and each.annotation is not None:
            text += f": {_unparsed(each.annotation)}"
            equals = " = "
        if parameter.default is not parameter.empty:
            text += equals + _value(parameter.default)
        yield text


def _value(default: Any) -> str:
    is_plain = default is None or isinstance(default, str | int | float | tuple | dict)
    return repr(default).replace("'", '"') if is_plain else "..."


def _unparsed(node: ast.AST) -> str:
    return ast.unparse(ast.fix_missing_locations(node)).replace("'", '"')


def _text_of(named: Any) -> str:
    return _in_markdown(inspect.getdoc(named) or "")


def _in_markdown(text: str) -> str:
    with_blocks = INDENTED.sub(_block, f"{text}\n")
    return INLINE.sub(r"`\1`", with_blocks).strip()


def _block(found: re.Match[str]) -> str:
    return f":\n\n```python\n{textwrap.dedent(found[1]).strip()}\n```\n\n"


def setup(app: Sphinx) -> None:
    """The extension of Sphinx. The models need a site of their own."""
    if not settings.configured:
        apps = ("auth", "contenttypes", "sessions")
        settings.configure(
            INSTALLED_APPS=[
                *(f"django.contrib.{app}" for app in apps),
                "django_identity",
            ],
        )
        django.setup()
    app.connect("source-read", _write)


def _write(_app: Sphinx, _page: str, source: list[str]) -> None:
    source[0] = written(source[0])
