"""Imported once by the process that forks the crowd: its processes need not do so again."""

from importlib import import_module

import django

django.setup()
for module in ("tests.concurrency", "tests.lifecycle.process_calls"):
    import_module(module)
