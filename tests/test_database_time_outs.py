"""The time-outs that ``docs/databases.md`` gives a database: its driver and server take them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.db import DEFAULT_DB_ALIAS, connection

PAGE = Path(__file__).parent.parent / "docs" / "databases.md"
# What a connection says of them: statement -> answer.
IN_FORCE = {
    "postgresql": {
        "SHOW statement_timeout": "30s",
        "SHOW lock_timeout": "5s",
        "SHOW idle_in_transaction_session_timeout": "1min",
        "SHOW tcp_user_timeout": None,
    },
    "mysql": {"SELECT @@innodb_lock_wait_timeout": 5},
}


@pytest.mark.skipif(connection.vendor not in IN_FORCE, reason="the page names no time-outs for it")
@pytest.mark.django_db
def test_the_time_outs_of_the_page_are_in_force() -> None:
    """The block for this database, as it stands there, on a new connection."""
    blocks = re.findall(r"```python\n(# (?:PostgreSQL|MySQL).*?)```", PAGE.read_text(), re.DOTALL)
    name = {"postgresql": "# PostgreSQL", "mysql": "# MySQL"}[connection.vendor]
    (block,) = [each for each in blocks if each.startswith(name)]
    settings = {DEFAULT_DB_ALIAS: dict(connection.settings_dict)}
    exec(block, {"DATABASES": settings})
    assert settings[DEFAULT_DB_ALIAS]["CONN_HEALTH_CHECKS"]
    other = connection.copy()
    other.settings_dict = settings[DEFAULT_DB_ALIAS]
    try:
        with other.cursor() as cursor:
            for statement, expected in IN_FORCE[connection.vendor].items():
                cursor.execute(statement)
                (answer,) = cursor.fetchone()
                assert expected in {None, answer}, statement
    finally:
        other.close()
