"""``python -m django_identity.sandbox``: serve the identity verification service locally.

``python -m django_identity.sandbox trigger EVENT --to URL`` sends one webhook event instead.
"""

import argparse
import logging
import os
import secrets
import signal
import ssl
import sys
import tempfile
import threading
from collections.abc import Sequence
from dataclasses import fields
from enum import StrEnum
from importlib.util import find_spec
from pathlib import Path

from django_identity.sandbox import local_site
from django_identity.sandbox.events import trigger
from django_identity.sandbox.events.addresses import InvalidAddress, require_address
from django_identity.sandbox.instruments import switches
from django_identity.sandbox.instruments.switches import Switches, UnknownSwitch
from django_identity.sandbox.server import http_server, own_process, tls
from django_identity.sandbox.server.callers import name_of
from django_identity.sandbox.server.database import SchemaMismatch

USAGE_ERROR = 2
HIGHEST_PORT = 65535
CONTROL_TOKEN_VARIABLE = "IDENTITY_SANDBOX_CONTROL_TOKEN"  # noqa: S105 -- a name, no secret
PORTAL_TOKEN_VARIABLE = "IDENTITY_SANDBOX_PORTAL_TOKEN"  # noqa: S105 -- a name, no secret
_PARTS = ("oauth2_provider", "jwcrypto", "sd_jwt")
_INSTALL = 'pip install "django-identity[sandbox]"'


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until SIGINT or SIGTERM, or send one event; return the process's exit code."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if arguments[:1] == [trigger.NAME]:
        return trigger.main(arguments[1:])
    return _serve(arguments)


def _serve(arguments: Sequence[str]) -> int:
    """Serve until SIGINT or SIGTERM."""
    if reason := own_process.refusal() or _missing_parts():
        return _refuse(reason)
    stopping = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopping.set())
    options = _parse(arguments)
    try:
        switches.change({each.name: getattr(options, each.name) for each in fields(Switches)})
    except UnknownSwitch as error:
        return _refuse(str(error))
    try:
        listening = http_server.bind(options.host, options.port)
    except OSError as error:
        return _refuse(f"Cannot listen on {options.host}:{options.port}: {error.strerror}.")
    with tempfile.TemporaryDirectory(
        prefix="identity-sandbox-", ignore_cleanup_errors=True
    ) as directory:
        portal_token = options.portal_token or secrets.token_urlsafe(32)
        scheme = "http" if options.tls is None and options.tls_cert is None else "https"
        origin = options.origin or http_server.origin_of(listening, scheme=scheme)
        # Without a folder of the operator's, the certificates go with the process.
        certificates = Path(options.tls or directory)
        try:
            listening.tls = _tls(options, certificates, origin)
        except (OSError, ValueError) as error:
            return _refuse(f"The certificate or its key cannot be used: {error}.")
        path = options.database or Path(directory) / "sandbox.sqlite3"
        try:
            http_server.start_django(
                origin=origin,
                database_path=path,
                portal_token=portal_token,
                control_token=options.control_token,
                webhook_hosts=options.webhook_host,
                sites=options.site,
            )
        except SchemaMismatch:
            return _refuse(f"{path} was made by another version of the sandbox; remove it.")
        if options.verbose:
            logging.getLogger("django_identity.sandbox.requests").setLevel(logging.DEBUG)
        http_server.start(listening)
        stop_sending = http_server.start_sender(options.webhook_ca)
        _announce(origin, portal_token, certificates if options.tls is not None else None)
        stopping.wait()
        stop_sending()
        http_server.stop(listening)
    return 0


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Read the command line; each switch is an option."""
    parser = argparse.ArgumentParser(
        prog="python -m django_identity.sandbox",
        description="Serve the identity verification service on this machine, for tests and demos.",
        epilog=f"To send one webhook event by hand: %(prog)s {trigger.NAME} --help",
    )
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on")
    parser.add_argument("--port", type=_port, default=9400, help="port; 0 takes a free one")
    parser.add_argument("--origin", default="", help="origin to advertise, if not http://HOST:PORT")
    parser.add_argument(
        "--database", type=Path, help="SQLite file to keep; without it everything is forgotten"
    )
    parser.add_argument(
        "--portal-token",
        default=os.environ.get(PORTAL_TOKEN_VARIABLE, ""),
        help=(
            "session token of the developer portal; default: "
            f"${PORTAL_TOKEN_VARIABLE}, or a new one at each start"
        ),
    )
    parser.add_argument(
        "--control-token",
        metavar="TOKEN",
        default=os.environ.get(CONTROL_TOKEN_VARIABLE, ""),
        help=(
            "the control API takes this token alone, wherever a request comes from; default: "
            f"${CONTROL_TOKEN_VARIABLE}"
        ),
    )
    parser.add_argument(
        "--tls",
        metavar="FOLDER",
        nargs="?",
        const="",
        help="serve https by a certificate made for it; FOLDER keeps the files",
    )
    parser.add_argument("--tls-cert", metavar="FILE", type=Path, help="serve https by these files")
    parser.add_argument("--tls-key", metavar="FILE", type=Path, help="the key, if not in the same")
    parser.add_argument(
        "--site",
        metavar="URL",
        action="append",
        type=_site,
        default=[],
        help=f"where the local site runs, if not at {' and '.join(local_site.SITES)}",
    )
    parser.add_argument(
        "--webhook-host",
        metavar="HOST",
        action="append",
        default=[],
        help="a private host that events may be sent to, whoever registers the address",
    )
    parser.add_argument(
        "--webhook-ca", metavar="FILE", type=trigger.authorities, help=trigger.CA_HELP
    )
    parser.add_argument("--verbose", action="store_true", help="log each request's method and path")
    for switch in fields(Switches):
        name, text = "--" + switch.name.replace("_", "-"), switch.metadata["help"]
        match switch.default:
            case StrEnum() as default:
                choices = [str(each) for each in type(default)]
                parser.add_argument(name, choices=choices, default=str(default), help=text)
            case bool() as default:
                parser.add_argument(
                    name, action=argparse.BooleanOptionalAction, default=default, help=text
                )
            case int() as default:
                parser.add_argument(name, type=int, default=default, help=text)
    options = parser.parse_args(arguments)
    if options.tls is not None and options.tls_cert:
        parser.error("give --tls or --tls-cert, not both")
    if options.tls_key and not options.tls_cert:
        parser.error("--tls-key needs --tls-cert")
    return options


def _tls(options: argparse.Namespace, folder: Path, origin: str) -> ssl.SSLContext | None:
    """Return what serves https, if the command line asks for it."""
    if options.tls_cert:
        return tls.context(options.tls_cert, options.tls_key)
    if options.tls is None:
        return None
    host = "" if options.host in http_server.EVERY_INTERFACE else options.host
    return tls.self_made(folder, [host, name_of(origin)])


def _port(text: str) -> int:
    """Read a port number."""
    port = int(text)
    if not 0 <= port <= HIGHEST_PORT:
        raise argparse.ArgumentTypeError(f"a port is a number from 0 to {HIGHEST_PORT}")
    return port


def _site(text: str) -> str:
    """Read the address of a site."""
    try:
        require_address(text)
    except InvalidAddress as error:
        raise argparse.ArgumentTypeError("a site is like http://127.0.0.1:8000") from error
    return text


def _missing_parts() -> str:
    """Return what to install, if the sandbox's extra is not there."""
    missing = [name for name in _PARTS if find_spec(name) is None]
    return f"The sandbox needs its extra. Install it: {_INSTALL}" if missing else ""


def _announce(origin: str, portal_token: str, certificates: Path | None) -> None:
    """Print the addresses, the developer's session token, and that the sandbox can be used."""
    addresses = http_server.Addresses(origin).lines()
    token = f"Portal session token  {portal_token}"
    ca_file = [f"CA file               {certificates / tls.CA_FILE}"] if certificates else []
    lines = ["Sandbox identity service", *addresses, *ca_file, token, "Ready.", ""]
    sys.stdout.write("\n".join(lines))
    sys.stdout.flush()


def _refuse(reason: str) -> int:
    """Say why the sandbox does not start."""
    sys.stderr.write(f"{reason}\n")
    return USAGE_ERROR


if __name__ == "__main__":
    sys.exit(main())
