"""Whether the service can be reached, and accepts this site."""

import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from http.client import INTERNAL_SERVER_ERROR, TOO_MANY_REQUESTS

from django.utils.http import parse_http_date_safe

from django_identity import exceptions
from django_identity.conf import Application
from django_identity.credentials import KeySet
from django_identity.exceptions.table import hint_of
from django_identity.instruments.signs.finding import (
    Diagnosis,
    Finding,
    Severity,
    fine,
    problem,
    warning,
)
from django_identity.lifecycle.ground.clocks import CLOCK_SKEW
from django_identity.secrets import Secret
from django_identity.service import ServiceClient

SMALL_SKEW_SECONDS = 30.0
# A refresh token and a person that do not exist. The service's refusal tells what is wrong.
NOBODY = "django-identity-doctor"
WHY_UNREACHABLE = {
    "gaierror": (
        "its host name is unknown",
        "Correct the name, or this machine's resolver.",
    ),
    "ConnectionRefusedError": (
        "nothing listens there",
        "Correct the port, or open the firewall.",
    ),
    "SSLCertVerificationError": (
        "its certificate is not trusted",
        "If a private authority issued it, name its file in the environment: SSL_CERT_FILE.",
    ),
    "SSLError": ("it speaks no TLS", "Correct scheme and port of the address."),
    "ProxyError": ("the proxy refuses the connection", "Correct HTTPS_PROXY."),
}
SLOW_DOWN = "Wait. If it stays, lower REFETCHES_PER_MINUTE."
DOWN = "The service at {}, or a proxy before it, is down or overloaded. Wait, or ask the service."
DROPPED = "Does a firewall drop packets to {}?"
OTHER = "The host or the path of {} is wrong, or something stands in between."
SYNCHRONISE = (
    "Synchronise the clocks (NTP). If all others differ alike, it is this machine's."
)


def of_service(application: Application) -> Diagnosis:
    """Fetch the key set, compare the clocks, and ask with a made-up token and person.

    The refusal tells whether addresses, client id and secret are right.
    """
    yield from _key_set(application)
    token = Secret(NOBODY)
    read = partial(ServiceClient.profile, subject=NOBODY, access_token=token)
    yield from _ask(application, "AUTH_URL", lambda client: client.refresh(token))
    yield from _ask(application, "BASE_URL", read)


def _key_set(application: Application) -> Diagnosis:
    origin = application.api_origin
    try:
        answer = ServiceClient(application).key_set()
        keys = KeySet.from_text(answer.body)
    except exceptions.ServiceError as error:
        yield _failed("key_set", error, setting="API_ORIGIN")
        return
    message = f"{origin}: {len(keys)} usable key(s)"
    if keys:
        yield fine("key_set", message)
    else:
        message += ": every credential is rejected"
        yield problem("key_set", message, "Tell the service.")
    # A cache keeps the date, and says for how long (RFC 9111 §5.1).
    age = answer.headers.get("age", "")
    their_now = parse_http_date_safe(answer.headers.get("date", ""))
    if their_now is not None and age.isdecimal():
        their_now += int(age)
    yield from _clocks(their_now)


def _clocks(their_now: int | None) -> Diagnosis:
    """A finding if the service's clock, if it was sent, differs from this machine's."""
    if their_now is None:
        return
    ahead = their_now - time.time()
    if abs(ahead) <= SMALL_SKEW_SECONDS:
        return
    level = Severity.WARNING
    if abs(ahead) > CLOCK_SKEW.total_seconds():
        level = Severity.PROBLEM
    message = f"the clock of the service differs by {ahead:+.0f} s from this machine's"
    yield Finding("clock", level, message, SYNCHRONISE)


def _ask(
    application: Application,
    setting: str,
    ask: Callable[[ServiceClient], object],
) -> Diagnosis:
    """The check's name is ``client`` for a refusal, ``address`` for an unusable answer."""
    try:
        with suppress(exceptions.SubjectMismatch):
            ask(ServiceClient(application))
    except (exceptions.ClientRejected, exceptions.EnvironmentMismatch) as refused:
        message = f"the service rejects the client ({refused.service_code})"
        yield problem("client", message, hint_of(refused.code))
    except (exceptions.InvalidGrant, exceptions.AccessTokenRejected):
        yield fine("address", f"{setting} answers")
    except exceptions.ServiceError as error:
        yield _failed("address", error, setting=setting)
    else:
        message = f"{setting} accepts values that do not exist"
        yield warning("address", message, f"Is {setting} the service's address?")


def _failed(check: str, error: exceptions.ServiceError, *, setting: str) -> Finding:
    """Why a call to the address of ``setting`` failed. Only a 429 passes by itself."""
    status = getattr(error, "status", 0)
    if isinstance(error, exceptions.RateLimited) or status == TOO_MANY_REQUESTS:
        message = f"{setting} asks for fewer calls (HTTP 429)"
        return warning(check, message, SLOW_DOWN)
    cause = f"{error.code}, {error}"
    remedy = OTHER
    if status >= INTERNAL_SERVER_ERROR:
        cause = f"it answers HTTP {status}"
        remedy = DOWN
    elif error.code == "service_timeout":
        cause = "no answer in time"
        remedy = DROPPED
    elif isinstance(error, exceptions.ServiceUnavailable) and error.network_error:
        unknown = ("it cannot be reached", OTHER)
        cause, remedy = WHY_UNREACHABLE.get(error.network_error, unknown)
    message = f"{setting} is not usable: {cause} ({error.code})"
    return problem(check, message, remedy.format(setting))
