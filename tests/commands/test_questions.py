"""A command that asks needs somebody who answers."""

import io
import sys

import pytest

from tests.commands.run_command import run


@pytest.mark.parametrize(
    "command",
    [("identity_erase", "subject-1"), ("identity_rotate_keys", "--forget-unreadable")],
)
def test_under_cron_nobody_answers_a_question(monkeypatch, command):
    """The command says what to give instead, and does nothing."""
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    ran = run(*command)
    assert (ran.code, ran.out) == (1, "")
    assert "--yes" in ran.error
