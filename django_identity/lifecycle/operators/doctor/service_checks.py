"""Whether the service can be reached and accepts this site."""

import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from http.client import INTERNAL_SERVER_ERROR, TOO_MANY_REQUESTS
from typing import NamedTuple

from django.utils.http import parse_http_date_safe

from django_identity import conf, exceptions
from django_identity.conf import Application
from django_identity.credentials import KeySet
from django_identity.lifecycle.clocks import CLOCK_SKEW
from django_identity.lifecycle.operators.doctor.finding import (
    Diagnosis,
    Finding,
    Level,
    fine,
    problem,
    warning,
)
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
SLOW_DOWN = (
    "Wait. If it stays, lower REFETCHES_PER_MINUTE, or ask the service for more calls"
    " a minute."
)
DOWN = "The service at {}, or a proxy before it, is down or overloaded. Wait, or ask the service."
SYNCHRONISE = (
    "Synchronise the clocks (NTP). If all others differ alike, it is this machine's."
)


def check_key_sets() -> Diagnosis:
    """Fetch each key set, and compare it and the service's clock with what the site has."""
    site = conf.application()
    origin = site.api_origin
    try:
        answer = ServiceClient(site).key_set()
        keys = KeySet.from_text(answer.body)
    except exceptions.ServiceError as error:
        why = why_failed(error, setting="API_ORIGIN")
        yield Finding("key_set", why.level, f"{origin}: {why.cause}", why.remedy)
        return
    message = f"{origin}: {len(keys)} usable key(s)"
    if keys:
        yield fine("key_set", message)
    else:
        message += ": every credential is rejected"
        yield problem("key_set", message, "Tell the service.")
    yield from _compare_clocks(parse_http_date_safe(answer.headers.get("date", "")))


def _compare_clocks(their_now: int | None) -> Diagnosis:
    """A finding if the service's clock, if it was sent, differs from this machine's."""
    if their_now is None:
        return
    ahead = their_now - time.time()
    if abs(ahead) <= SMALL_SKEW_SECONDS:
        return
    level = Level.WARNING
    if abs(ahead) > CLOCK_SKEW.total_seconds():
        level = Level.PROBLEM
    direction = "behind"
    if ahead > 0:
        direction = "ahead of"
    message = (
        f"the clock of the service is {abs(ahead):.0f} s {direction} this machine's"
    )
    yield Finding("clock", level, message, SYNCHRONISE)


def may_probe(probe: bool | None) -> bool:
    """Whether the service may be asked something. None: unless it is live."""
    if probe is None:
        return conf.application().environment != "live"
    return probe


def check_credentials(probe: bool | None) -> Diagnosis:
    """Ask both endpoints with values that do not exist."""
    token = Secret(NOBODY)
    read = partial(ServiceClient.profile, subject=NOBODY, access_token=token)
    if not may_probe(probe):
        yield fine("credentials", "not tried, which --probe does")
        return
    site = conf.application()
    yield from _probe(site, "AUTH_URL", lambda client: client.refresh(token))
    yield from _probe(site, "BASE_URL", read)


def _probe(
    site: Application, setting: str, ask: Callable[[ServiceClient], object]
) -> Diagnosis:
    """The check's name is ``credentials`` for a refusal, ``address`` for no usable answer."""
    try:
        with suppress(exceptions.SubjectMismatch):
            ask(ServiceClient(site))
    except exceptions.ClientRejected as refused:
        yield problem(
            "credentials",
            f"the service rejects the client ({refused.service_code})",
            "Compare CLIENT_ID and CLIENT_SECRET with the developer portal, for the environment"
            f" {site.environment}. The portal gives a new secret.",
        )
    except exceptions.EnvironmentMismatch:
        yield problem(
            "credentials",
            f"the client is not of the environment {site.environment}",
            "Correct ENVIRONMENT, or use the client of that environment.",
        )
    except (exceptions.InvalidGrant, exceptions.AccessTokenRejected):
        yield fine("address", f"{setting} answers")
    except exceptions.ServiceError as error:
        why = why_failed(error, setting=setting)
        message = f"{setting} is not usable: {why.cause}"
        yield Finding("address", why.level, message, why.remedy)
    else:
        yield warning(
            "address",
            f"{setting} accepts values that do not exist",
            f"Is {setting} the service's address?",
        )


class Why(NamedTuple):
    """The cause of a failed call, its remedy, and whether an operator must act."""

    cause: str
    remedy: str
    level: Level = Level.PROBLEM


def why_failed(error: exceptions.ServiceError, *, setting: str) -> Why:
    """Why a call to the address of ``setting`` failed."""
    status = getattr(error, "status", 0)
    if isinstance(error, exceptions.RateLimited) or status == TOO_MANY_REQUESTS:
        return Why("it asks for fewer calls (HTTP 429)", SLOW_DOWN, Level.WARNING)
    if status >= INTERNAL_SERVER_ERROR:
        return Why(f"it answers HTTP {status}", DOWN.format(setting))
    if error.code == "service_timeout":
        remedy = f"Does a firewall drop packets to {setting}?"
        return Why(f"no answer in time ({error.code})", remedy)
    if isinstance(error, exceptions.ServiceUnavailable) and error.network_error:
        other = ("it cannot be reached", f"Correct {setting}.")
        cause, remedy = WHY_UNREACHABLE.get(error.network_error, other)
        return Why(f"{cause} ({error.network_error})", remedy)
    if isinstance(error, (exceptions.ServiceUnavailable, exceptions.MalformedAnswer)):
        remedy = f"The path or the host of {setting} is wrong, or something stands in between."
        return Why(f"not an answer of the service ({error.code}, {error})", remedy)
    return Why(f"{error.code} ({error})", f"Correct {setting}.")
