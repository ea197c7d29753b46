"""``identity-sandbox``: serve the identity verification service locally."""

import argparse
import logging
import os
import secrets
import signal
import sys
import tempfile
import threading
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from django.db import DatabaseError

from django_identity import sandbox
from django_identity.sandbox import apps, callers, envelope, server, switches
from django_identity.sandbox.errors import Invalid

PROGRAM = "identity-sandbox"
HIGHEST_PORT = 65535
CONTROL_TOKEN_VARIABLE = "IDENTITY_SANDBOX_CONTROL_TOKEN"
PORTAL_TOKEN_VARIABLE = "IDENTITY_SANDBOX_PORTAL_TOKEN"
_PARTS = ("oauth2_provider", "jwcrypto", "sd_jwt")
_INSTALL = 'The sandbox needs the extra "sandbox" of django-identity: docs/sandbox.md'
_OPEN = (
    "A sandbox that others can reach needs --control-token TOKEN: the control API, the console and "
    "the test people answer whoever sends it."
)
_IN_USE = """\
Cannot listen on {host}:{port}: {why}.
Perhaps another sandbox runs. Stop it, or take another port:
    {program} --port {other}
and name it in the settings of the site:
    DJANGO_IDENTITY = sandbox_application("http://{host}:{other}")
If the site is not at {site}, say where: --site URL"""
_READY = """\
Sandbox identity service
API base              {origin}/api/v1
Authorization server  {origin}
Key set               {origin}/.well-known/jwks.json
Account pages         {origin}/account/
Applications          {origin}/portal/
Control API           {origin}/sandbox/
Console               {origin}/
Portal session token  {portal_token}
Ready.
"""


class Unstartable(Exception):
    """The sandbox cannot start. The message says why, and what to do."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until SIGINT or SIGTERM; return the process's exit code."""
    try:
        _serve(arguments)
    except Unstartable as error:
        sys.stderr.write(f"{error}\n")
        return 2
    return 0


def _serve(arguments: Sequence[str] | None) -> None:
    if apps.is_in_a_site():
        raise Unstartable(apps.IN_A_SITE)
    if any(find_spec(name) is None for name in _PARTS):
        raise Unstartable(_INSTALL)
    stopping = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopping.set())

    options = _parse(arguments)
    listening = _bind(options)
    origin = options.origin or server.origin_of(listening)
    is_local = all(map(callers.is_loopback, (options.host, callers.name_of(origin))))
    if not is_local and not options.control_token:
        raise Unstartable(_OPEN)

    # A sandbox for other machines has no site, unless it is named.
    has_site = options.site or is_local
    with tempfile.TemporaryDirectory(
        prefix=f"{PROGRAM}-",
        ignore_cleanup_errors=True,
    ) as folder:
        database = options.database or Path(folder) / "sandbox.sqlite3"
        _start_django(
            options,
            origin,
            database,
            sites=options.site if has_site else None,
        )
        server.start(listening)
        sender = server.start_sender()
        sys.stdout.write(
            _READY.format(origin=origin, portal_token=options.portal_token),
        )
        sys.stdout.flush()
        stopping.wait()
        sender.stop()
        server.stop(listening)


def _start_django(
    options: argparse.Namespace,
    origin: str,
    database: Path,
    *,
    sites: list[str] | None,
) -> None:
    try:
        server.start_django(
            sites=sites,
            origin=origin,
            database=str(database),
            portal_token=options.portal_token,
            control_token=options.control_token,
        )
    except DatabaseError as error:  # a table or a column is missing
        reason = f"{database} was made by another version of the sandbox; remove it."
        raise Unstartable(reason) from error
    if options.verbose:
        logging.getLogger("django_identity.sandbox.requests").setLevel(logging.DEBUG)


def _bind(options: argparse.Namespace) -> server.SandboxServer:
    """Open the port, with the certificate if there is one."""
    try:
        listening = server.bind(options.host, options.port)
    except OSError as error:
        reason = _IN_USE.format(
            host=options.host,
            port=options.port,
            why=error.strerror,
            other=options.port % HIGHEST_PORT + 1,
            program=PROGRAM,
            site=sandbox.SITES[0],
        )
        raise Unstartable(reason) from error
    try:
        if options.tls_cert:
            listening.tls = server.tls_context(options.tls_cert, options.tls_key)
    except OSError as error:
        raise Unstartable(
            f"The certificate or its key cannot be used: {error}.",
        ) from error
    return listening


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line, and set the switches."""
    parser = argparse.ArgumentParser(
        prog=PROGRAM,
        usage="%(prog)s [options]",
        description="Serve the identity verification service on this machine, for tests and demos.",
    )
    _add_options(parser)
    _add_switches(parser)
    options = parser.parse_args(arguments)
    if options.tls_key and not options.tls_cert:
        parser.error("--tls-key needs --tls-cert")
    switches.change({name: getattr(options, name) for name in switches.ALL})
    return options


def _add_options(parser: argparse.ArgumentParser) -> None:
    where = parser.add_argument_group("address")
    where.add_argument("--host", default="127.0.0.1", help="address to listen on")
    where.add_argument(
        "--port",
        type=_port,
        default=9400,
        help="port; 0 takes a free one",
    )
    where.add_argument(
        "--origin",
        default="",
        help="origin to advertise, if not http://HOST:PORT",
    )
    where.add_argument(
        "--tls-cert",
        metavar="FILE",
        type=Path,
        help="serve https by these files",
    )
    where.add_argument(
        "--tls-key",
        metavar="FILE",
        type=Path,
        help="the key, if not in the same",
    )

    site = parser.add_argument_group("site and data")
    text = f"where the local site runs, if not at {' or '.join(sandbox.SITES)}; may be repeated"
    site.add_argument(
        "--site",
        metavar="URL",
        action="append",
        type=_site,
        default=[],
        help=text,
    )
    site.add_argument(
        "--database",
        type=Path,
        help="SQLite file to keep; else all is forgotten",
    )
    site.add_argument(
        "--verbose",
        action="store_true",
        help="log each request's method and path",
    )

    tokens = parser.add_argument_group("tokens")
    text = f"what other machines send to control the sandbox; default: ${CONTROL_TOKEN_VARIABLE}"
    token = os.environ.get(CONTROL_TOKEN_VARIABLE, "")
    tokens.add_argument("--control-token", metavar="TOKEN", default=token, help=text)
    text = f"the developer portal's session token; default: ${PORTAL_TOKEN_VARIABLE}, or a new one"
    token = os.environ.get(PORTAL_TOKEN_VARIABLE, "") or secrets.token_urlsafe(32)
    tokens.add_argument("--portal-token", metavar="TOKEN", default=token, help=text)


def _add_switches(parser: argparse.ArgumentParser) -> None:
    readings = parser.add_argument_group(
        "switches, where the specification has several readings",
    )
    for name, switch in switches.ALL.items():
        kind: dict[str, Any] = {"choices": switch.metadata["values"]}
        if isinstance(switch.default, bool):
            kind = {"action": argparse.BooleanOptionalAction}
        flag = "--" + name.replace("_", "-")
        readings.add_argument(
            flag,
            default=switch.default,
            help=switch.metadata["help"],
            **kind,
        )


def _port(text: str) -> int:
    """Read a port number."""
    if not 0 <= int(text) <= HIGHEST_PORT:
        raise argparse.ArgumentTypeError(f"a port is a number from 0 to {HIGHEST_PORT}")
    return int(text)


def _site(text: str) -> str:
    """Read the address of a site."""
    try:
        return envelope.http_address("site", text)
    except Invalid as error:
        raise argparse.ArgumentTypeError(str(error)) from error


if __name__ == "__main__":
    sys.exit(main())
