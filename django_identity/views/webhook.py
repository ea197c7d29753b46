"""The webhook: the service delivers its events here.

The answer is 200 when the event is stored and its effect is committed. A wrong signature is a 401
(``said.events``), and nothing of the body is read. A signed body that is no event is a 400; of an
event that takes something away the readable part suffices (``service.webhooks``). If the database
is away, it is a 503: the service delivers again.
"""

from typing import Any

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponseBase, JsonResponse
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST

from django_identity import database, flows
from django_identity.exceptions import EventRefused, IdentityError
from django_identity.logs import LogEvent, log_failure
from django_identity.service.webhooks import LARGEST_BODY
from django_identity.web.pages import NEVER_CACHED


@csrf_exempt
@login_not_required
@database.non_atomic
@require_POST
def webhook(request: HttpRequest) -> HttpResponseBase:
    """Receive one delivery. Only its signature proves the sender."""
    headers = {"Cache-Control": NEVER_CACHED}
    try:
        signature = request.headers.get("x-webhook-signature", "")
        flows.receive_event(_bounded_body(request), signature=signature)
    except IdentityError as error:
        log_failure(LogEvent.EVENT_REFUSED, error)
        if error.http_status == 503:
            headers["Retry-After"] = "30"
        refusal = {"received": False, "error": {"code": error.code}}
        return JsonResponse(refusal, status=error.http_status, headers=headers)
    return JsonResponse({"received": True}, headers=headers)


def _bounded_body(request: HttpRequest) -> bytes:
    """The raw bytes, at most 256 KB of them. Raises ``EventRefused``.

    Django treats a request without a length as empty, even if the server marks the end of a chunked
    body. In that case the server's own stream is read.
    """
    stream: Any = request
    environ = getattr(request, "environ", None)
    if environ and not request.META.get("CONTENT_LENGTH"):
        if not environ.get("wsgi.input_terminated"):
            raise EventRefused(code="length_required")
        stream = environ["wsgi.input"]
    # Each server raises its own class of errors for a broken chunk.
    try:
        body = bytes(stream.read(LARGEST_BODY + 1))
    except Exception as error:
        raise EventRefused(code="body_cut_off") from error
    if len(body) > LARGEST_BODY:
        raise EventRefused(code="body_too_large")
    return body
