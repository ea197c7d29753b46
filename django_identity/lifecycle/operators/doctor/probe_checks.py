"""What only a try can tell: whether credentials pass, and whether the webhook can be reached."""

from contextlib import suppress
from urllib.parse import urlsplit

from django.urls import NoReverseMatch, reverse
from django.utils import timezone
from django.views.decorators.debug import sensitive_variables

from django_identity import conf, strict_json
from django_identity.conf import Application
from django_identity.conf.rules import origin_of
from django_identity.credentials import RejectionReason, base64url
from django_identity.credentials.form import take_apart
from django_identity.credentials.payload import read_payload
from django_identity.exceptions import (
    CredentialRejected,
    SealedValueUnreadable,
    ServiceError,
)
from django_identity.lifecycle import claims, key_sets, sealing
from django_identity.lifecycle.operators.doctor.finding import (
    Diagnosis,
    Finding,
    fine,
    problem,
    warning,
)
from django_identity.lifecycle.operators.doctor.grant_checks import newest_grants
from django_identity.lifecycle.operators.doctor.service_checks import (
    may_probe,
    why_failed,
)
from django_identity.models import AuthorizationRequest, TokenGrant
from django_identity.service import ServiceClient
from django_identity.service.answers import ClaimsAnswer
from django_identity.service.http import Answer, Call, exchange
from django_identity.service.refusals import code_of

UNAUTHORIZED = 401
EXPECTED = "signature_invalid"
WHY_REJECTED = {
    RejectionReason.PAYLOAD_ISS: "Set API_ORIGIN to the issuer.",
    RejectionReason.PAYLOAD_AUD: "CLIENT_ID is not the client that the tokens are of.",
    RejectionReason.PAYLOAD_ENVIRONMENT: "ENVIRONMENT is not that of the credentials.",
    RejectionReason.KEY: "API_ORIGIN serves the keys of another issuer.",
}
OTHER = "Tell the service, with this reason."
NO_CREDENTIAL = "Without a credential no gate for a claim opens. Tell the service."
IN_BETWEEN = (
    "The service sends a POST without a session, and follows no redirect. Let this address pass"
    " through redirects to https or to another host, logins and firewalls; register the address"
    " that answers."
)


# A credential of the newest person


def check_credential(probe: bool | None) -> Diagnosis:
    """Read the claims of the newest person whose access token is alive, and verify them."""
    if not may_probe(probe):
        return
    grant = _with_live_token()
    if grant is not None:
        yield from _try_credential(conf.application(), grant)
    elif probe:
        yield fine("credential", "not tried, because nobody has a live access token")


def _with_live_token() -> TokenGrant | None:
    """Of a person who lets this site read claims. No token is refreshed for a probe."""
    for grant in newest_grants():
        is_alive = grant.access_expires_at > timezone.now()
        if is_alive and grant.identity.allows(claims.SCOPE):
            return grant
    return None


@sensitive_variables()
def _try_credential(site: Application, grant: TokenGrant) -> Diagnosis:
    """What no key opens is the matter of another check."""
    identity = grant.identity
    message = "the newest person's credential is"
    try:
        token = sealing.unseal(identity, grant, "access_token")
        answer = ServiceClient(site).claims(identity.subject, access_token=token)
        proof = key_sets.verify_answer(site, answer, subject=identity.subject)
    except CredentialRejected as rejected:
        message = f"{message} rejected: {rejected.reason}"
        if rejected.reason is RejectionReason.PAYLOAD_ISS:
            message += f" ({_issuer_of(answer)} is not {site.api_origin})"
        yield problem("credential", message, WHY_REJECTED.get(rejected.reason, OTHER))
    except SealedValueUnreadable:
        return
    except ServiceError as error:
        why = why_failed(error, setting="BASE_URL")
        yield warning("credential", f"{message} not readable: {why.cause}", why.remedy)
    else:
        if proof is None:
            yield warning("credential", f"{message} not in the answer", NO_CREDENTIAL)
        else:
            yield fine("credential", f"{message} verified")


def _issuer_of(answer: ClaimsAnswer) -> str:
    """The origin that the credential names, whose signature is good, or words for no origin."""
    with suppress(CredentialRejected, ValueError, TypeError, AttributeError):
        _token, segments, _disclosures = take_apart(answer.credential or "")
        payload = read_payload(base64url.decode(segments[1]))
        return origin_of(payload["iss"])
    return "its issuer"


# The webhook's own address


def check_webhook_address() -> Diagnosis:
    """Deliver an event without a signature. Only this site's webhook refuses it in this way."""
    site = conf.application()
    if address := _webhook_address(site):
        yield _try_webhook(site, address)
    else:
        message = "not tried, because its address is not known"
        yield fine("webhook", f"{message}: set REDIRECT_URI, or sign in")


def _webhook_address(site: Application) -> str:
    """The address beside that of the callback, which the newest sign-in or the settings know."""
    known = site.redirect_uri
    if known is None:
        begun = AuthorizationRequest.objects.all()
        known = begun.order_by("-pk").values_list("redirect_uri", flat=True).first()
    if not known:
        return ""

    try:
        callback = reverse("identity:callback")
        webhook = reverse("identity:webhook")
    except NoReverseMatch:
        return ""  # A system check tells of it.
    # A proxy may have put a path before the site's own.
    if urlsplit(known).path.endswith(callback):
        return known.removesuffix(callback) + webhook
    return origin_of(known) + webhook


def _try_webhook(site: Application, address: str) -> Finding:
    where = f"the webhook's address {address}"
    try:
        answer = exchange(site, Call("webhook", address, json={}, sent_once=True))
    except ServiceError as error:
        if error.code == "unexpected_redirect":
            return problem("webhook", f"{where} redirects", IN_BETWEEN)
        why = why_failed(error, setting="this address")
        message = f"{where} cannot be reached from here: {why.cause}"
        return warning("webhook", message, "Try it from another network.")

    if answer.status == UNAUTHORIZED and _code_in(answer) == EXPECTED:
        return fine("webhook", f"{where} answers")
    message = (
        f"{where} answers HTTP {answer.status}, and not as this site's webhook does"
    )
    return problem("webhook", message, IN_BETWEEN)


def _code_in(answer: Answer) -> str:
    with suppress(strict_json.NotStrictJSON):
        return code_of(strict_json.read_object(answer.body))
    return ""
