"""No broker and no worker: cron runs ``manage.py identity_upkeep`` each minute."""

from __future__ import annotations

from tests.sites.plain.settings import *  # noqa: F403
