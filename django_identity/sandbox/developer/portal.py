"""The developer endpoints (spec: Endpoints), and the page of applications beside them."""

import json
import re
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any
from uuid import UUID

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.utils.crypto import constant_time_compare
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_http_methods

from django_identity.sandbox import callers, envelope
from django_identity.sandbox.developer import applications
from django_identity.sandbox.errors import Invalid
from django_identity.sandbox.models import Application, Client, Environment
from django_identity.sandbox.people import accounts

#: What is shown once: a label and a value. It is kept in no session, so leaving the page loses it.
Shown = list[tuple[str, str]]

DeveloperEndpoint = Callable[..., HttpResponse]
_ABSOLUTE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[^#]+")


def developer_endpoint(endpoint: DeveloperEndpoint) -> DeveloperEndpoint:
    """Guard an endpoint: POST, the developer portal session token, a JSON object as body."""

    @csrf_exempt
    @wraps(endpoint)
    def view(request: HttpRequest, **parts: str) -> HttpResponse:
        if request.method != "POST":
            return envelope.method_not_allowed("POST")
        if not constant_time_compare(callers.bearer(request), settings.SANDBOX_PORTAL_TOKEN):
            message = "Send the developer portal session token as Bearer."
            challenge = 'Bearer realm="developer"'
            return envelope.error(401, envelope.UNAUTHORIZED, message, challenge=challenge)
        try:
            return endpoint(envelope.members_of(request), **parts)
        except Invalid as error:
            return envelope.invalid(str(error))

    return view


@developer_endpoint
def rotate_secret(members: Mapping[str, Any], app_id: str) -> HttpResponse:
    """Issue a new client secret for one mode; the old one is void at once."""
    application, mode = _application(app_id), members.get("mode")
    if application is None:
        return _unknown_application()
    if mode not in Environment.values:
        return envelope.invalid("mode is test or live.")
    client = Client.objects.get(registered=application, environment=mode)
    issued = applications.rotate_client_secret(client)
    return envelope.success(
        {"mode": mode, "clientId": issued.client_id, "clientSecret": issued.client_secret}
    )


@developer_endpoint
def test_users(members: Mapping[str, Any]) -> HttpResponse:
    """Make a sandbox user, whose password is shown this once."""
    app_id = members.get("appId")
    if not isinstance(app_id, str):
        return envelope.invalid("appId must be a string.")
    if _application(app_id) is None:
        return _unknown_application()
    made = accounts.create_user()
    content = {"userId": made.user.subject, "email": made.user.email, "password": made.password}
    return envelope.success(content, status=201)


def _application(app_id: str) -> Application | None:
    try:
        return Application.objects.filter(app_id=UUID(app_id)).first()
    except ValueError:
        return None


def _unknown_application() -> HttpResponse:
    """Refuse an ``appId`` that names nothing."""
    return envelope.error(404, envelope.NOT_FOUND, "There is no such application.")


@require_http_methods(["GET", "POST"])
@callers.operators_only
def portal(request: HttpRequest) -> HttpResponse:
    """List the applications with their credential sets, and do what the pressed button says."""
    shown: Shown = []
    act = _ACTIONS.get(request.POST.get("do", ""))
    if act is not None:
        try:
            shown = act(request)
        except Invalid as error:
            messages.error(request, f"{error} Nothing was changed.")
        else:
            messages.success(request, "This is shown once." if shown else "Saved.")
    listed = Application.objects.order_by("-pk").prefetch_related("client_set")
    context = {
        "shown": shown,
        "applications": [(each, json.dumps(each.document_key)) for each in listed],
        "token": settings.SANDBOX_PORTAL_TOKEN,
        "api": f"{settings.SANDBOX_ORIGIN}/api/v1",
    }
    return render(request, "sandbox/portal.html", context)


def _redirect_addresses(request: HttpRequest) -> list[str]:
    """Return the absolute addresses without a fragment that were sent (RFC 6749, 3.1.2)."""
    addresses = request.POST.get("redirect_uris", "").split()
    for address in addresses:
        if not _ABSOLUTE.fullmatch(address):
            raise Invalid(f"{address} is not an absolute address without a fragment.")
    if not addresses:
        raise Invalid("An application needs a redirect address.")
    return addresses


def _register(request: HttpRequest) -> Shown:
    name = request.POST.get("name", "").strip()[:200]
    if not name:
        raise Invalid("An application needs a name.")
    _application, issued = applications.register(name, _redirect_addresses(request))
    return [
        (f"{mode.capitalize()} client {what}", value)
        for mode, each in issued.items()
        for what, value in (("id", each.client_id), ("secret", each.client_secret))
    ]


def _change_addresses(request: HttpRequest) -> Shown:
    """Save the redirect addresses and the webhook's; its first one makes the secret that signs."""
    client, addresses = _client(request), _redirect_addresses(request)
    is_first = not client.webhook_secret
    applications.register_webhook(client, request.POST.get("url", "").strip())
    client.redirect_uris = " ".join(addresses)
    client.save(update_fields=["redirect_uris"])
    return [("Webhook secret", client.webhook_secret)] if is_first and client.webhook_url else []


def _rotate_client_secret(request: HttpRequest) -> Shown:
    issued = applications.rotate_client_secret(_client(request))
    return [("Client id", issued.client_id), ("Client secret", issued.client_secret)]


def _rotate_webhook_secret(request: HttpRequest) -> Shown:
    return [("Webhook secret", applications.rotate_webhook_secret(_client(request)))]


def _change_tier(request: HttpRequest) -> Shown:
    application = get_object_or_404(Application, app_id=request.POST.get("app_id"))
    try:
        key = json.loads(request.POST.get("document_key") or "null")
    except ValueError as error:
        raise Invalid("The key is not JSON.") from error
    applications.change_document_key(application, key)
    return []


def _make_test_user(request: HttpRequest) -> Shown:
    made = accounts.create_user()
    user = made.user
    return [("User id", user.subject), ("E-mail address", user.email), ("Password", made.password)]


def _client(request: HttpRequest) -> Client:
    return get_object_or_404(Client, client_id=request.POST.get("client_id"))


_ACTIONS: dict[str, Callable[[HttpRequest], Shown]] = {
    "register": _register,
    "addresses": _change_addresses,
    "client_secret": _rotate_client_secret,
    "webhook_secret": _rotate_webhook_secret,
    "tier": _change_tier,
    "test_user": _make_test_user,
}
