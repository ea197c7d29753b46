"""Marks of tests that only some databases can run."""

from __future__ import annotations

import pytest
from django.db import connection

on_postgresql = pytest.mark.skipif(connection.vendor != "postgresql", reason="PostgreSQL's own")
