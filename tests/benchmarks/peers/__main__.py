"""``python -m tests.benchmarks.peers [--json]``: measure all, print one table."""

from __future__ import annotations

import argparse
import json

from tests.benchmarks.peers.environment import room
from tests.benchmarks.peers.measuring import measure
from tests.benchmarks.peers.table import as_markdown

parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.peers", description=__doc__)
parser.add_argument("--json", action="store_true", help="print one JSON object")
chosen = parser.parse_args()
with room() as made:
    found = measure(made)
print(json.dumps(found, indent=1) if chosen.json else as_markdown(found))  # noqa: T201  its job
