"""Print what the map of gates says of a site that runs, as a process of its own.

``python -m tests.example_project.print_gate_map SESSION…`` prints a JSON object for each
session key (or ``nobody``): every URL, and whether all of its gates are open.
"""

import json
import sys
from importlib import import_module

import django
from django.conf import settings
from django.contrib.auth import get_user
from django.http import HttpRequest


def main(*keys: str) -> None:
    django.setup()
    # Models can be imported only now.
    from django_identity.gates import closed_to  # noqa: PLC0415
    from django_identity.instruments import gate_map  # noqa: PLC0415

    store = import_module(settings.SESSION_ENGINE).SessionStore
    for key in keys:
        request = HttpRequest()
        request.session = store(None if key == "nobody" else key)
        user, said = get_user(request), {}
        for address in gate_map.addresses():
            closed = [
                closed_to(gate, user, session=request.session)
                for gate in address.reading.gates
            ]
            said[address.url] = not any(closed)
        print(json.dumps(said))  # noqa: T201


if __name__ == "__main__":
    main(*sys.argv[1:])
