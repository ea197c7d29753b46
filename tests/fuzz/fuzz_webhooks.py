"""Coverage-guided fuzzing of the webhook (atheris, libFuzzer).

::

    pip install atheris
    python -m tests.fuzz.fuzz_webhooks parse --seconds 60
    python -m tests.fuzz.fuzz_webhooks intake --seconds 60

``parse`` reads any bytes as an event. ``intake`` calls the view with any body and headers, signed
rightly half of the time, on a database in memory. As in ``fuzz_credentials``, anything but the
documented answers ends the run with exit code 77 and a file ``crash-…``.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import sys
import tempfile
from pathlib import Path

import atheris
import django

os.environ["DJANGO_SETTINGS_MODULE"] = "tests.settings"
os.environ["DATABASE_URL"] = "sqlite://:memory:"
with atheris.instrument_imports(
    include=["django_identity.service", "django_identity.lifecycle", "django_identity.views"]
):
    django.setup()
    from django_identity.exceptions import EventUnreadable
    from django_identity.service.webhooks import Event
    from tests.fuzz.webhook_calls import ANSWERS, Call

from django.core.management import call_command

from django_identity.handlers import EventType
from django_identity.models import WebhookEvent
from tests.deliveries import event_body
from tests.records import make_identity, make_user

SEPARATOR = b"\n--\n"
SIGNED, UNMEASURED, TERMINATED = 1, 2, 4
MOST_ROWS = 1000


def fuzz_parse(octets: bytes) -> None:
    """An event that can be stored, or the documented error."""
    try:
        event = Event.parse(octets)
    except EventUnreadable:
        return
    assert 0 < len(event.event_id) <= 255
    json.dumps(event.content, allow_nan=False).encode()


def fuzz_intake(octets: bytes) -> None:
    """One of the documented answers. The first byte says how it is sent; the headers follow."""
    how, rest = (octets[0] if octets else 0), octets[1:]
    head, separator, body = rest.partition(SEPARATOR)
    if not separator:
        head, body = b"", rest
    lines = [line.partition(": ") for line in head.decode("latin-1").split("\n")]
    headers = {name: value for name, colon, value in lines if colon and name != "method"}
    method = next((value for name, _, value in lines if name == "method"), "POST")
    call = Call(
        body,
        headers,
        method,
        is_signed=bool(how & SIGNED),
        has_length=not how & UNMEASURED,
        is_terminated=bool(how & TERMINATED),
    )
    assert call.status() in ANSWERS
    if WebhookEvent.objects.count() > MOST_ROWS:
        WebhookEvent.objects.all().delete()


EVENTS = [event_body(event_type, kyc_level="level_1") for event_type in EventType]
HEADS = [b"", b"content-length: 12", b"content-encoding: gzip", b"method: GET\nx-a: b"]
MODES = {
    "parse": (fuzz_parse, EVENTS),
    "intake": (
        fuzz_intake,
        [
            bytes([how]) + head + SEPARATOR + body
            for how in (SIGNED, 0, SIGNED | UNMEASURED | TERMINATED, UNMEASURED)
            for head, body in zip(HEADS, EVENTS, strict=False)
        ],
    ),
}
WORDS = [
    *EventType, "consent_revoked", "event_type", "event_id", "timestamp", "data", "user_id", "sub",
    "kyc_level", "status", "provider", "claim_type", "2026-11-01T10:00:00Z", "+14:00", "NaN",
    "1e999", "\\u0000", "\\ud800", "9223372036854775808", "null", "content-length", "method",
]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.fuzz_webhooks")
    parser.add_argument("mode", choices=MODES)
    parser.add_argument("file", nargs="?", help="repeat what this file did")
    parser.add_argument("--seconds", type=int, default=60)
    chosen = parser.parse_args()
    target, seeds = MODES[chosen.mode]
    logging.disable()
    call_command("migrate", verbosity=0)
    make_identity(make_user())
    if chosen.file:
        target(Path(chosen.file).read_bytes())
        return
    with tempfile.TemporaryDirectory() as folder:
        corpus, words = Path(folder, "corpus"), Path(folder, "words")
        corpus.mkdir()
        for number, seed in enumerate(seeds):
            Path(corpus, f"seed-{number}").write_bytes(seed)
        words.write_text("".join(f"{json.dumps(word)}\n" for word in WORDS), "utf-8")
        limits = [f"-max_total_time={chosen.seconds}", "-max_len=8192", "-timeout=5"]
        atheris.Setup([sys.argv[0], str(corpus), f"-dict={words}", *limits], target)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
