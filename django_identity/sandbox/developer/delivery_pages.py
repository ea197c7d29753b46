"""Pages of deliveries: what was sent, what came back, and once more."""

import json

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from django_identity.sandbox.developer.session import developer_required
from django_identity.sandbox.events import deliveries, problems
from django_identity.sandbox.models import Client, Delivery, DeliveryAttempt, attempts_for
from django_identity.sandbox.server import callers

PER_PAGE = 50


@developer_required
@require_safe
def listing(request: HttpRequest, client_id: str) -> HttpResponse:
    """List the deliveries to a credential set, the newest first."""
    client = get_object_or_404(Client, client_id=client_id)
    made = Delivery.objects.filter(client=client).order_by("-pk").prefetch_related("attempts")
    page = Paginator(made, PER_PAGE).get_page(request.GET.get("page"))
    is_local = callers.is_local(request)
    rows = [(each, _attempts(each, is_local=is_local)) for each in page]
    context = {"client": client, "page": page, "rows": rows}
    return render(request, "sandbox/portal/deliveries.html", context)


@developer_required
@require_safe
def delivery(request: HttpRequest, delivery_id: int) -> HttpResponse:
    """Show one delivery with the request and each answer."""
    shown = get_object_or_404(Delivery.objects.select_related("client"), pk=delivery_id)
    context = {
        "delivery": shown,
        "client": shown.client,
        "attempts": _attempts(shown, is_local=callers.is_local(request))[::-1],
        "readable": _readable(shown.body),
    }
    return render(request, "sandbox/portal/delivery.html", context)


@developer_required
@require_POST
def send_again(request: HttpRequest, delivery_id: int) -> HttpResponse:
    """Send one more time."""
    deliveries.send_again(get_object_or_404(Delivery, pk=delivery_id))
    messages.success(request, _("It is on its way. Reload to see what came back."))
    return redirect("portal_delivery", delivery_id=delivery_id)


def _attempts(delivery: Delivery, *, is_local: bool) -> list[DeliveryAttempt]:
    """Return the attempts as this page shows them, each problem in the page's language."""
    attempts = attempts_for(delivery, is_local=is_local)
    for attempt in attempts:
        attempt.problem = problems.translated(attempt.problem)
    return attempts


def _readable(body: str) -> str:
    """Return the JSON of ``body`` with line breaks."""
    return json.dumps(json.loads(body), indent=2, ensure_ascii=False)
