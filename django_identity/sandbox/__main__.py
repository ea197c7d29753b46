"""``python -m django_identity.sandbox``: serve the identity verification service locally."""

import argparse
import logging
import signal
import sys
import tempfile
import threading
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path

from django_identity.sandbox import server, switches
from django_identity.sandbox.database import SchemaMismatch
from django_identity.sandbox.switches import Switches, TokenSubject

USAGE_ERROR = 2
HIGHEST_PORT = 65535


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until SIGINT or SIGTERM; return the process's exit code."""
    stopping = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopping.set())
    options = _parse(arguments)
    switches.change({each.name: getattr(options, each.name) for each in fields(Switches)})
    try:
        listening = server.bind(options.host, options.port)
    except OSError as error:
        return _refuse(f"Cannot listen on {options.host}:{options.port}: {error.strerror}.")
    with tempfile.TemporaryDirectory(
        prefix="identity-sandbox-", ignore_cleanup_errors=True
    ) as directory:
        origin = options.origin or server.origin_of(listening)
        path = options.database or Path(directory) / "sandbox.sqlite3"
        try:
            server.start_django(origin=origin, database_path=path)
        except SchemaMismatch:
            return _refuse(f"{path} was made by another version of the sandbox; remove it.")
        if options.verbose:
            logging.getLogger("django_identity.sandbox.requests").setLevel(logging.DEBUG)
        server.start(listening)
        _announce(origin)
        stopping.wait()
        server.stop(listening)
    return 0


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line; each switch is an option."""
    parser = argparse.ArgumentParser(
        prog="python -m django_identity.sandbox",
        description="Serve the identity verification service on this machine, for tests and demos.",
    )
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on")
    parser.add_argument("--port", type=_port, default=9400, help="port; 0 takes a free one")
    parser.add_argument("--origin", default="", help="origin to advertise, if not http://HOST:PORT")
    parser.add_argument(
        "--database", type=Path, help="SQLite file to keep; without it everything is forgotten"
    )
    parser.add_argument("--verbose", action="store_true", help="log each request's method and path")
    for switch in fields(Switches):
        name, text = "--" + switch.name.replace("_", "-"), switch.metadata["help"]
        match switch.default:
            case TokenSubject():
                parser.add_argument(name, choices=list(TokenSubject), default="none", help=text)
            case bool() as default:
                parser.add_argument(
                    name, action=argparse.BooleanOptionalAction, default=default, help=text
                )
            case int() as default:
                parser.add_argument(name, type=int, default=default, help=text)
    return parser.parse_args(arguments)


def _port(text: str) -> int:
    """Read a port number."""
    port = int(text)
    if not 0 <= port <= HIGHEST_PORT:
        raise argparse.ArgumentTypeError(f"a port is a number from 0 to {HIGHEST_PORT}")
    return port


def _announce(origin: str) -> None:
    """Print the addresses and that the sandbox can be used."""
    lines = ["Sandbox identity service", *server.Addresses(origin).lines(), "Ready.", ""]
    sys.stdout.write("\n".join(lines))
    sys.stdout.flush()


def _refuse(reason: str) -> int:
    """Say why the sandbox does not start."""
    sys.stderr.write(f"{reason}\n")
    return USAGE_ERROR


if __name__ == "__main__":
    sys.exit(main())
