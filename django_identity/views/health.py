"""A health check for load balancers. It does not say what is wrong."""

from django.http import HttpRequest, JsonResponse
from django.views.decorators.http import require_http_methods

from django_identity.lifecycle.operators.doctor import is_ready
from django_identity.views.flow import flow_view


@flow_view
@require_http_methods(["GET", "HEAD"])
def health(request: HttpRequest) -> JsonResponse:
    """Respond with 200 or 503. ``identity_doctor`` tells why. The service is not called."""
    ready = is_ready()
    status = "ready" if ready else "unavailable"
    return JsonResponse({"status": status}, status=200 if ready else 503)
