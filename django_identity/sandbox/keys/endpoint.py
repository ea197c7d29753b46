"""GET /.well-known/jwks.json."""

from django.http import HttpRequest, HttpResponse, JsonResponse

from django_identity.sandbox.keys import key_set


def jwks(request: HttpRequest) -> HttpResponse:
    """Publish the key set; applications may keep it for 5 minutes (spec: Limits)."""
    response = JsonResponse(key_set.published())
    response["Cache-Control"] = "public, max-age=300"
    return response
