"""What is wrong with a site, in a sentence that names the cause or the place."""

import logging
import sys
import traceback
from collections.abc import Collection
from contextlib import suppress
from typing import Any
from unittest.mock import patch

from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY

from django_identity.instruments.gate_map import Address
from django_identity.testing.drill.report import Report

#: Methods that change nothing.
SAFE = {"", "get", "head", "options", "trace"}
#: The kind of an address whose view nobody guards.
OPEN = "whether it needs a gate"
#: Where errors of receivers, handlers and policies go.
LOGS = ("django_identity", "django.dispatch")


def search_map(found: Collection[Address], report: Report) -> None:
    """Find what is open beside a gate of the same view: another address, or a method."""
    gated = {address.view: address.url for address in found if address.reading.gates}
    for address in found:
        url = address.url
        reading = address.reading
        methods = set(reading.open_methods) - SAFE
        if reading.gates and methods:
            words = ", ".join(sorted(methods)).upper()
            report.find(f"`{url}` is open to {words} beside a method with a gate")
        if address.include or reading.guards or url in report.untried:
            continue
        report.unseen[url] = OPEN
        beside = gated.get(address.view)
        # One class is several pages, and functions without a name of their own share one.
        is_class = bool(reading.methods)
        has_own_name = "<" not in address.view
        if beside and has_own_name and not is_class:
            report.find(f"`{url}` is open beside `{beside}`: {address.view}, no gate")


def cached(path: str, response: Any) -> str:
    """Whether a response may stay in a cache that everybody has, or an empty text."""
    said = response.headers.get("Cache-Control", "")
    if "private" in said or "no-store" in said or response.status_code != 200:
        return ""
    return f"`{path}` may stay in a cache: its Cache-Control is “{said}”"


def why_signed_in(response: Any) -> str:
    """Who is signed in at a step at which nobody is."""
    request = response.wsgi_request
    # Django's own is lazy. It has been read, and remembers whom the session names.
    if request.user != getattr(request, "_cached_user", None):
        return "`request.user` is not the session's"
    backend = request.session.get(BACKEND_SESSION_KEY)
    return f"a session of {backend} in {settings.SESSION_ENGINE}"


def trouble_in(response: Any) -> str:
    """Why a page is not what it has to be: the exception and its place, or an error's code."""
    failure = getattr(response, "exc_info", None)
    if failure:
        return described(failure[1])
    with suppress(KeyError, TypeError):
        return f"{response.context['error'].code}"
    return f"status {response.status_code}"


def described(error: BaseException) -> str:
    """An error of the site's code with its place."""
    trace = traceback.extract_tb(error.__traceback__)
    place = trace[-1]
    for frame in trace:
        if "/lib/python" not in frame.filename and frame.filename[0] != "<":
            place = frame
    return f"{type(error).__name__} in {place.filename}, line {place.lineno}: {error}"


def watch_logs(report: Report) -> None:
    """Find each error of the site's own code that is caught and logged, and log nothing.

    The site's own handlers of logs may send it to somebody.
    """

    def watch(_logger: logging.Logger, record: logging.LogRecord) -> None:
        error = sys.exc_info()[1]
        if error and record.name in LOGS:
            event = getattr(record, "event", record.name)
            report.find(f"{event}: {described(error)}")

    # Whatever LOGGING says, which may silence Django's own.
    patch.multiple(
        logging.Logger,
        isEnabledFor=lambda _logger, level: level >= logging.ERROR,
        handle=watch,
    ).start()
