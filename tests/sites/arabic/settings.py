"""Arabic, from right to left, with the clock and the calendar of another place."""

from __future__ import annotations

from tests.sites.plain.settings import *  # noqa: F403

LANGUAGE_CODE = "ar"
TIME_ZONE = "Asia/Riyadh"
FIRST_DAY_OF_WEEK = 6
USE_THOUSAND_SEPARATOR = True
