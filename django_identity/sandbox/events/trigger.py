"""``python -m django_identity.sandbox trigger``: send one event by hand, to any address."""

import argparse
import json
import os
import ssl
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from django_identity.sandbox.events.addresses import InvalidAddress, require_address
from django_identity.sandbox.events.courier import Courier, Outcome, trusting
from django_identity.sandbox.events.event import Event, EventType, new_event_id, timestamp
from django_identity.sandbox.instruments import clock, switches
from django_identity.sandbox.instruments.switches import EventJson

NAME = "trigger"
ACKNOWLEDGED, REFUSED = 0, 1
LONGEST_WAIT = 3600
CA_HELP = "authorities to trust for events over https, beside the public ones"
SECRET_VARIABLE = "IDENTITY_WEBHOOK_SECRET"  # noqa: S105 -- a name, no secret
_DEFAULT_USER = "00000000-0000-4000-8000-000000000001"


def main(arguments: Sequence[str]) -> int:
    """Send the event and print the answer. Return 0 if it was acknowledged, else 1."""
    parser = _parser()
    options = parser.parse_args(arguments)
    secret = options.secret or os.environ.get(SECRET_VARIABLE, "")
    if not _is_utf_8([secret, *arguments]):
        parser.error("every argument and the secret must be UTF-8")
    if not secret:
        parser.error(f"give --secret, or set {SECRET_VARIABLE}")
    if options.event not in set(EventType) and not options.any_type:
        parser.error(f"{options.event} is not one of {', '.join(EventType)}; --any-type sends it")
    if options.indented:
        switches.change({"event_json": EventJson.INDENTED})
    body = _event(options).body()
    sys.stdout.write(f"POST {options.to}\n{body}\n\n")
    with closing(Courier(options.webhook_ca)) as courier:
        outcome = courier.send(
            options.to, body.encode(), secret=secret, seconds=options.timeout, privately=True
        )
    sys.stdout.write(_told(outcome))
    return ACKNOWLEDGED if outcome.acknowledged else REFUSED


def _parser() -> argparse.ArgumentParser:
    """Describe the command line."""
    parser = argparse.ArgumentParser(
        prog=f"python -m django_identity.sandbox {NAME}",
        description="Sign one event and send it once. Exit code 0: acknowledged with 2xx; 1: not.",
        epilog=f"Events: {', '.join(EventType)}.",
    )
    parser.add_argument("event", metavar="EVENT", help="the event type, such as consent.revoked")
    parser.add_argument("--to", metavar="URL", type=_address, required=True, help="where to")
    parser.add_argument("--secret", help=f"webhook secret; default: ${SECRET_VARIABLE}")
    parser.add_argument("--user-id", default=_DEFAULT_USER, help="whom it is about")
    parser.add_argument("--event-id", help="default: a new one; the same again is a repeat")
    parser.add_argument("--timestamp", help="default: now")
    parser.add_argument(
        "--field",
        metavar="KEY=VALUE",
        type=_field,
        action="append",
        default=[],
        help="a member of data; KEY:=JSON for anything but text; may be given several times",
    )
    parser.add_argument("--any-type", action="store_true", help="send types that are not listed")
    parser.add_argument("--indented", action="store_true", help="write the JSON with line breaks")
    parser.add_argument("--webhook-ca", metavar="FILE", type=authorities, help=CA_HELP)
    parser.add_argument("--timeout", type=_seconds, default=10, help="seconds to wait (10)")
    return parser


def _event(options: argparse.Namespace) -> Event:
    """Create the requested event."""
    typical = _TYPICAL_DATA.get(options.event, {})
    return Event(
        event_type=options.event,
        event_id=new_event_id() if options.event_id is None else options.event_id,
        timestamp=options.timestamp or timestamp(clock.now()),
        data={"user_id": options.user_id, **typical, **dict(options.field)},
    )


def _told(outcome: Outcome) -> str:
    if outcome.status is None:
        return f"{outcome.problem}\n"
    verdict = "acknowledged" if outcome.acknowledged else "not acknowledged"
    lines = [f"{outcome.status} {verdict}, {outcome.milliseconds:g} ms", outcome.problem]
    return "\n".join([*filter(None, lines), outcome.excerpt, ""])


def _address(text: str) -> str:
    try:
        return require_address(text)
    except InvalidAddress as error:
        raise argparse.ArgumentTypeError(f"{text!r} cannot be sent to. {error}") from error


def authorities(text: str) -> ssl.SSLContext:
    """Read a file of certificates."""
    try:
        return trusting(Path(text))
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _seconds(text: str) -> float:
    """Read a time to wait."""
    seconds = float(text)
    if not 0 < seconds <= LONGEST_WAIT:
        raise argparse.ArgumentTypeError(f"more than 0 and at most {LONGEST_WAIT} seconds")
    return seconds


def _is_utf_8(texts: Sequence[str]) -> bool:
    """Whether the texts are valid UTF-8 and can be sent."""
    try:
        "".join(texts).encode()
    except UnicodeEncodeError:
        return False
    return True


def _field(text: str) -> tuple[str, object]:
    """Read ``key=text`` or ``key:=json``."""
    key, separator, value = text.partition("=")
    if not separator or not key.rstrip(":"):
        raise argparse.ArgumentTypeError(f"{text!r} is not KEY=VALUE.")
    if not key.endswith(":"):
        return key, value
    try:
        return key[:-1], json.loads(value)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{value!r} is not JSON; for text use =.") from error


_VERIFICATION = {"kyc_level": "level_2", "status": "verified", "provider": "Sandbox KYC"}
_CLAIM = {"claim_type": "age_over_18", "provider": "Sandbox Identity"}
_TYPICAL_DATA: dict[str, dict[str, object]] = {
    EventType.KYC_VERIFIED: {**_VERIFICATION},
    EventType.KYC_REJECTED: {**_VERIFICATION, "kyc_level": "level_1", "status": "rejected"},
    EventType.CONSENT_GRANTED: {"scopes": ["profile:read", "kyc:read", "claims:read"]},
    EventType.CLAIM_ISSUED: {**_CLAIM},
    EventType.CLAIM_REVOKED: {**_CLAIM},
}
