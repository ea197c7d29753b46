"""People with passwords beside us, who come in by a page of the site's own."""

from __future__ import annotations

from tests.sites.plain.settings import *  # noqa: F403

LOGIN_URL = "local-sign-in"
