"""A process of a site: does what its standard input says, line by line, and answers each line.

``python -m tests.lifecycle.key_sets.process SETTING``, with the setting as JSON. A line is a number
of threads and a verb: ``current`` or a ``kid`` that the held set may lack. The answer is a JSON
list with the ``kid``s that each thread ended up with, or the code of its error.
"""

from __future__ import annotations

import json
import sys
from concurrent.futures import ThreadPoolExecutor

import django
from django.db import connections

django.setup()

from django.conf import settings  # noqa: E402  after the set-up

from django_identity import conf  # noqa: E402
from django_identity.exceptions import KeysUnavailable  # noqa: E402
from django_identity.lifecycle.upkeep import key_sets  # noqa: E402


def asked(verb: str) -> list[str] | str:
    application = conf.application()
    try:
        keys = key_sets.current(application)
        if verb != "current" and keys.get(verb) is None:
            keys = key_sets.refreshed(application, unknown_in=keys)
    except KeysUnavailable as error:
        return error.code
    finally:
        connections.close_all()
    return list(keys.kids)


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> None:
    settings.DJANGO_IDENTITY = {"default": json.loads(sys.argv[1])}
    say("ready")
    for line in sys.stdin:
        threads, verb = line.split()
        with ThreadPoolExecutor(int(threads)) as pool:
            answers = list(pool.map(asked, [verb] * int(threads)))
        say(json.dumps(answers))


main()
