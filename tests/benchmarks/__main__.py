"""``python -m tests.benchmarks NAME [--json] [--seconds N]``: run one benchmark, a module here."""

from __future__ import annotations

import argparse
import importlib
import json
import os
import pkgutil
from pathlib import Path

import django

NOT_BENCHMARKS = {"__main__", "database", "many_identities", "peers", "runner"}


def main() -> None:
    found = {module.name for module in pkgutil.iter_modules([str(Path(__file__).parent)])}
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.add_argument("name", choices=sorted(found - NOT_BENCHMARKS))
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--seconds", type=int, help="how long `soak` lasts")
    chosen = parser.parse_args()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
    django.setup()
    lasting = {} if chosen.seconds is None else {"seconds": chosen.seconds}
    result = importlib.import_module(f"tests.benchmarks.{chosen.name}").run(**lasting)
    print(json.dumps(result.as_json()) if chosen.json else result.as_table())  # noqa: T201  its job


main()
