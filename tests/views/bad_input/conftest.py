"""Everything that is logged is looked at."""

import logging

import pytest


@pytest.fixture(autouse=True)
def _every_log_line(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
