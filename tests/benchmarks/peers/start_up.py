"""What a site costs at its start: ``python -m …peers.start_up``, a fresh process each time.

Prints the CPU milliseconds and the megabytes of memory after ``django.setup()``, and again after
the first look-up of an address, for which Django loads all URLs and their views. ``--jobs`` also
imports this package's tasks and API, as a worker and a site with a front end of its own do.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

BEGAN = time.process_time()
PAGE = 4096
MODULES = ("django_identity.tasks", "django_identity.api.views")


def main() -> None:
    import django  # noqa: PLC0415  measured

    django.setup()
    measured = {"set_up": _cost()}
    from django.urls import reverse  # noqa: PLC0415  measured

    reverse("who")
    if "--jobs" in sys.argv:
        for module in MODULES:
            __import__(module)
    measured["with_urls"] = _cost()
    print(json.dumps(measured))  # noqa: T201  the parent reads it


def _cost() -> dict[str, float]:
    resident = int(Path("/proc/self/statm").read_text().split()[1]) * PAGE
    return {"cpu_ms": (time.process_time() - BEGAN) * 1000, "megabytes": resident / 2**20}


if __name__ == "__main__":
    main()
