"""Whether the service can be reached and accepts this site, for each application."""

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import datetime
from functools import partial

from django.utils import timezone
from django.views.decorators.debug import sensitive_variables

from django_identity import conf, exceptions, vault
from django_identity.conf import Application
from django_identity.credentials import RejectionReason, key_report
from django_identity.lifecycle.events import CLOCK_SKEW
from django_identity.lifecycle.operators.doctor.findings import Finding, Level
from django_identity.lifecycle.upkeep import key_sets
from django_identity.models import LinkedIdentity
from django_identity.service import ServiceClient

SMALL_SKEW_SECONDS = 30.0
# A refresh token and a person that do not exist. The service's refusal tells what is wrong.
NOBODY = "django-identity-doctor"
WHY_UNREACHABLE = {
    "HostUnknown": ("its host name is unknown", "Correct the name, or this machine's resolver."),
    "ConnectionRefusedError": ("nothing listens there", "Correct the port, or open the firewall."),
    "SSLCertVerificationError": (
        "its certificate is not trusted",
        "If a private authority issued it, name that authority in CA_FILE.",
    ),
    "SSLError": ("it speaks no TLS", "Correct scheme and port of the address."),
    "ProxyError": ("the proxy refuses the connection", "Correct PROXY and its credentials."),
}
WRONG_SETTING = {
    RejectionReason.PAYLOAD_ISS: "API_ORIGIN is not their issuer",
    RejectionReason.PAYLOAD_AUD: "CLIENT_ID is not their audience",
    RejectionReason.PAYLOAD_ENVIRONMENT: "ENVIRONMENT is not theirs",
}
SYNCHRONISE = "Synchronise the clocks (NTP). If all others differ alike, it is this machine's."


def check_key_sets() -> Iterator[Finding]:
    """Fetch each key set, and compare it and the service's clock with what the site has."""
    for site in {site.api_origin: site for site in conf.applications()}.values():
        yield from _check_key_set(site)


def _check_key_set(site: Application) -> Iterator[Finding]:
    age = key_sets.age_of(site)
    held = "none is held" if age is None else f"the held set is {age:.0f} s old"
    try:
        answer = ServiceClient(site).key_set()
        found = key_report.report(answer.text)
    except exceptions.ServiceError as error:
        cause, remedy = _why(site, error, setting="API_ORIGIN")
        yield Finding("key_set", Level.PROBLEM, f"{site.api_origin}: {cause}; {held}", remedy)
        return
    yield Finding("key_set", Level.FINE, f"{site.api_origin}: {len(found.keys)} key(s); {held}")
    for key in found.keys:
        use = "" if key.is_usable else ", not usable"
        name = json.dumps(key.kid)
        yield Finding("key", Level.FINE, f"{name} thumbprint {key.thumbprint or 'none'}{use}")
    for warning in found.warnings:
        level = Level.WARNING if any(key.is_usable for key in found.keys) else Level.PROBLEM
        yield Finding("key", level, f"{site.api_origin}: {warning}", "Tell the service.")
    if answer.date is not None:
        yield from compare_clocks("the service", answer.date)


def compare_clocks(whose: str, their_now: datetime) -> Iterator[Finding]:
    """A finding if that clock differs from this machine's."""
    ahead = (their_now - timezone.now()).total_seconds()
    if abs(ahead) <= SMALL_SKEW_SECONDS:
        return
    level = Level.PROBLEM if abs(ahead) > CLOCK_SKEW.total_seconds() else Level.WARNING
    direction = "ahead of" if ahead > 0 else "behind"
    message = f"the clock of {whose} is {abs(ahead):.0f} s {direction} this machine's"
    yield Finding("clock", level, message, SYNCHRONISE)


def check_issuers() -> Iterator[Finding]:
    """Verify the newest stored credential: settings that were changed since do not fit it."""
    for site in conf.applications():
        ours = LinkedIdentity.objects.filter(application=site.alias).exclude(credential="")
        newest = ours.order_by("-pk").first()
        reason = _rejection(site, newest) if newest else None
        if reason in WRONG_SETTING:
            said = f"{site.alias}: the stored credentials do not fit the settings ({reason})"
            remedy = f"{WRONG_SETTING[reason]}. Put the former value back."
            yield Finding("issuer", Level.PROBLEM, said, remedy)


@sensitive_variables()
def _rejection(site: Application, identity: LinkedIdentity) -> RejectionReason | None:
    """Why the credential is rejected. None: it is not, or other checks report it."""
    context = identity.sealing_context("credential")
    try:
        text = vault.unseal(identity.credential, keys=site.encryption_keys, context=context)
        keys = key_sets.current(site)
        key_sets.verify_for(site, text, subject=identity.subject, keys=keys)
    except (exceptions.SealedValueUnreadable, exceptions.ServiceError):
        return None
    except exceptions.CredentialRejected as rejected:
        return rejected.reason
    return None


def check_credentials(probe: bool | None) -> Iterator[Finding]:
    """Ask both endpoints with values that do not exist. None: all applications but the live."""
    for site in conf.applications():
        if probe or (probe is None and site.environment != "live"):
            yield from _probe(site, "AUTH_URL", lambda client: client.refresh(NOBODY))
            read = partial(ServiceClient.profile, subject=NOBODY, access_token=NOBODY)
            yield from _probe(site, "BASE_URL", read)


def _probe(
    site: Application, setting: str, ask: Callable[[ServiceClient], object]
) -> Iterator[Finding]:
    """The check's name is ``credentials`` for a refusal, ``address`` for no usable answer."""
    try:
        with suppress(exceptions.SubjectMismatch):
            ask(ServiceClient(site))
    except exceptions.ClientRejected as refused:
        cause = f"{site.alias}: the service rejects the client ({refused.service_code})"
        remedy = (
            "Compare CLIENT_ID and CLIENT_SECRET with the developer portal, for the environment"
            f" {site.environment}. identity_rotate_secret gets a new secret."
        )
        yield Finding("credentials", Level.PROBLEM, cause, remedy)
    except exceptions.EnvironmentMismatch:
        cause = f"{site.alias}: the client is not of the environment {site.environment}"
        remedy = "Correct ENVIRONMENT, or use the client of that environment."
        yield Finding("credentials", Level.PROBLEM, cause, remedy)
    except exceptions.ServiceRefusal:
        yield Finding("address", Level.FINE, f"{site.alias}: {setting} answers")
    except exceptions.ServiceError as error:
        cause, remedy = _why(site, error, setting=setting)
        message = f"{site.alias}: {setting} is not usable: {cause}"
        yield Finding("address", Level.PROBLEM, message, remedy)
    else:
        cause = f"{site.alias}: {setting} accepts values that do not exist"
        yield Finding("address", Level.WARNING, cause, f"Is {setting} the service's address?")


def _why(site: Application, error: exceptions.ServiceError, *, setting: str) -> tuple[str, str]:
    """The cause of a failed call, and its remedy."""
    route = " through PROXY" if site.proxy else ""
    if isinstance(error, exceptions.ServiceTimeout):
        remedy = f"Does a firewall drop packets to {setting}{route}?"
        return f"no answer in time{route} ({error.code})", remedy
    if isinstance(error, exceptions.ServiceUnavailable) and error.network_error:
        known = WHY_UNREACHABLE.get(error.network_error)
        cause, remedy = known or ("it cannot be reached", f"Correct {setting}.")
        return f"{cause}{route} ({error.network_error})", remedy
    if isinstance(error, (exceptions.ServiceUnavailable, exceptions.MalformedAnswer)):
        remedy = f"The path or the host of {setting} is wrong, or something stands in between."
        return f"not an answer of the service ({error.code}, {error})", remedy
    return f"{error.code} ({error})", f"Correct {setting}."
