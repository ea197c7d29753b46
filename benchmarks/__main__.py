"""``python -m benchmarks NAME``: run one benchmark, a module here with ``run()``."""

import importlib
import os
import sys

import django
from django.test.utils import setup_test_environment

NAMES = (
    "verify",
    "gate",
    "erasure",
    "audit",
    "refetch",
    "lists",
    "size",
    "threads",
    "grown",
)

if sys.argv[1:2] == [] or sys.argv[1] not in NAMES:
    raise SystemExit(f"{__doc__} One of {', '.join(NAMES)}.")
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
django.setup()
setup_test_environment()
for name, figure in importlib.import_module(f"benchmarks.{sys.argv[1]}").run().items():
    print(f"{name:<44}{figure:12.3f}")  # noqa: T201  its job
