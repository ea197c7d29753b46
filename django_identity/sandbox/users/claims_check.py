"""POST /claims/verify: a server-side check of a credential."""

from django.http import HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt

from django_identity.sandbox.claims import checking
from django_identity.sandbox.oauth import clients
from django_identity.sandbox.server import envelope, json_body


@csrf_exempt
def verify_claims(request: HttpRequest) -> HttpResponse:
    """Tell an application whether a credential that it was given is valid now, and what it says."""
    if request.method != "POST":
        return envelope.method_not_allowed("POST")
    asking = clients.authenticate(request)
    if asking is None:
        refusal = envelope.error(401, envelope.UNAUTHORIZED, "The client id or secret is wrong.")
        refusal["WWW-Authenticate"] = clients.CHALLENGE
        return refusal
    members = json_body.members_of(request) or {}
    credential = members.get("credential")
    if not isinstance(credential, str):
        message = "The body is a JSON object with the credential as a string."
        return envelope.error(400, envelope.INVALID_REQUEST, message)
    verdict = checking.check(credential, asking.client)
    answer = {"valid": verdict.fault is None, "reason": verdict.fault, "claims": verdict.claims}
    return envelope.success(answer)
