"""What tests of the budget of calls share."""

from __future__ import annotations

import time

import pytest


@pytest.fixture
def _early_in_the_minute() -> None:
    """Calls are counted in windows of the clock; a test that counts must not straddle two."""
    second = time.time() % 60
    if second > 55:
        time.sleep(60 - second)
