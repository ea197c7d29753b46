"""The reasons: closed, ordered, documented, each pinned by a test."""

from __future__ import annotations

import importlib
import inspect
import re
from pathlib import Path

import pytest

from django_identity.credentials import RejectionReason
from django_identity.credentials.reasons import CHECKS

ROOT = Path(__file__).parents[2]
CHECK = re.compile(r"^\| [^|]+ \| `(?P<reason>[a-z_.]+)` \| [^|]+ \|$", re.MULTILINE)
ROW = re.compile(r"^\| `(?P<reason>[a-z_.]+)` \| (?P<tests>`credentials/[^|]+) \|$", re.MULTILINE)
CHECKED = CHECK.findall((ROOT / "docs" / "credentials.md").read_text("utf-8"))
ROWS = list(ROW.finditer((ROOT / "docs" / "security.md").read_text("utf-8")))


def test_every_reason_is_in_one_check():
    """The checks, in order, give all reasons, each in one place."""
    reasons = [reason for check in CHECKS for reason in check.reasons]
    assert sorted(reasons) == sorted(RejectionReason)
    assert len({check.title for check in CHECKS}) == len(CHECKS)


def test_reasons_are_declared_in_the_order_of_the_checks():
    """One order: of the enum, of the checks, of the documented tables."""
    assert [reason for check in CHECKS for reason in check.reasons] == list(RejectionReason)
    reasons = [reason.value for reason in RejectionReason]
    assert reasons == CHECKED
    assert [row["reason"] for row in ROWS] == reasons


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["reason"])
def test_every_reason_is_pinned(row):
    """Each row of the table names tests that exist, and one that expects its reason."""
    reason = RejectionReason(row["reason"])
    references = re.findall(r"`credentials/(\w+)\.py::(\w+)`", row["tests"])
    modules = {file: importlib.import_module(f"tests.credentials.{file}") for file, _ in references}
    sources = [inspect.getsource(getattr(modules[file], test)) for file, test in references]
    assert any(reason.name in source for source in sources)
