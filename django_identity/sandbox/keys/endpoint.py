"""GET /.well-known/jwks.json."""

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.csrf import csrf_exempt

from django_identity.sandbox.keys import key_set
from django_identity.sandbox.server import envelope


@csrf_exempt
def jwks(request: HttpRequest) -> HttpResponse:
    """Publish the key set; applications may keep it for 5 minutes (spec: Limits)."""
    if request.method not in {"GET", "HEAD"}:
        return envelope.method_not_allowed("GET")
    response = JsonResponse(key_set.published())
    response["Cache-Control"] = "public, max-age=300"
    return response
