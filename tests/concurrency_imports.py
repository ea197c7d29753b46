"""Imported once by the process that forks the crowd: its processes need not do so again."""

from __future__ import annotations

from importlib import import_module

import django

django.setup()
for module in ("tests.concurrency", "tests.lifecycle.crowd_calls", "tests.service.crowd_calls"):
    import_module(module)
