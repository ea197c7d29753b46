"""The developer endpoints (spec: Endpoints), and the page of applications beside them."""

import json
import re
from collections.abc import Callable
from typing import Any
from uuid import UUID

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.utils.crypto import constant_time_compare
from django.views.decorators.http import require_http_methods

from django_identity.sandbox import callers, envelope
from django_identity.sandbox.developer import applications
from django_identity.sandbox.envelope import Refused
from django_identity.sandbox.errors import Invalid
from django_identity.sandbox.models import Application, Client, Environment
from django_identity.sandbox.people import accounts

#: What is shown once: a label and a value. It is kept in no session, so leaving the page loses it.
Shown = list[tuple[str, str]]

_ABSOLUTE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[^#]+")


def _sent(request: HttpRequest) -> dict[str, Any]:
    """Return the members of the body, which the developer portal session token vouches for.

    Raises:
        Refused: it is another token.
        Invalid: the body cannot be used.
    """
    if not constant_time_compare(
        callers.bearer(request),
        settings.SANDBOX_PORTAL_TOKEN,
    ):
        message = "Send the developer portal session token as Bearer."
        challenge = 'Bearer realm="developer"'
        raise Refused(401, envelope.UNAUTHORIZED, message, challenge=challenge)
    return envelope.members_of(request)


@envelope.endpoint("POST")
def rotate_secret(request: HttpRequest, app_id: str) -> HttpResponse:
    """Issue a new client secret for one mode; the old one is void at once."""
    mode = _sent(request).get("mode")
    application = _application(app_id)
    if mode not in Environment.values:
        raise Invalid("mode is test or live.")
    client = Client.objects.get(registered=application, environment=mode)
    client_id, client_secret = applications.rotate_client_secret(client)
    return envelope.success(
        {"mode": mode, "clientId": client_id, "clientSecret": client_secret},
    )


@envelope.endpoint("POST")
def test_users(request: HttpRequest) -> HttpResponse:
    """Make a sandbox user, whose password is shown this once."""
    app_id = _sent(request).get("appId")
    if not isinstance(app_id, str):
        raise Invalid("appId must be a string.")
    _application(app_id)
    user, password = accounts.create_user(accounts.Account())
    content = {"userId": user.subject, "email": user.email, "password": password}
    return envelope.success(content, status=201)


def _application(app_id: str) -> Application:
    """Return the application that ``app_id`` names. Raises ``Refused`` if there is none."""
    try:
        return Application.objects.get(app_id=UUID(app_id))
    except (ValueError, Application.DoesNotExist) as error:
        message = "There is no such application."
        raise Refused(404, envelope.NOT_FOUND, message) from error


@require_http_methods(["GET", "HEAD", "POST"])
@callers.operators_only
def portal(request: HttpRequest) -> HttpResponse:
    """List the applications with their credential sets, and do what the pressed button says."""
    shown: Shown = []
    field = problem = ""
    act = _ACTIONS.get(request.POST.get("do", ""))
    if act is not None:
        try:
            shown = act(request)
        except Invalid as error:
            field, _colon, problem = str(error).partition(": ")
            messages.error(request, "Nothing was changed.")
        else:
            messages.success(request, "This is shown once." if shown else "Saved.")

    newest = Application.objects.order_by("-pk").prefetch_related("client_set")
    context = {
        "shown": shown,
        "field": field,
        "problem": problem,
        "owner": request.POST.get("client_id") or request.POST.get("app_id", ""),
        "applications": [
            (listed, listed.document_key and json.dumps(listed.document_key))
            for listed in newest
        ],
        "token": settings.SANDBOX_PORTAL_TOKEN,
        "api": f"{settings.SANDBOX_ORIGIN}/api/v1",
    }
    return render(request, "sandbox/portal.html", context)


def _redirect_addresses(request: HttpRequest) -> list[str]:
    """Return the absolute addresses without a fragment that were sent (RFC 6749, 3.1.2)."""
    addresses = request.POST.get("redirect_uris", "").split()
    for address in addresses:
        if not _ABSOLUTE.fullmatch(address):
            raise Invalid(
                f"redirect_uris: {address} is not an absolute address without a fragment.",
            )
    if not addresses:
        raise Invalid("redirect_uris: An application needs a redirect address.")
    return addresses


def _register(request: HttpRequest) -> Shown:
    name = request.POST.get("name", "").strip()[:200]
    if not name:
        raise Invalid("name: An application needs a name.")
    _, issued = applications.register(name, _redirect_addresses(request))
    shown: Shown = []
    for mode, (client_id, client_secret) in issued.items():
        shown.append((f"{mode.capitalize()} client id", client_id))
        shown.append((f"{mode.capitalize()} client secret", client_secret))
    return shown


def _change_addresses(request: HttpRequest) -> Shown:
    """Save the redirect addresses and the webhook's; its first one makes the secret that signs."""
    client = _client(request)
    addresses = _redirect_addresses(request)
    had_secret = client.webhook_secret != ""
    applications.register_webhook(client, request.POST.get("url", "").strip())
    client.redirect_uris = " ".join(addresses)
    client.save(update_fields=["redirect_uris"])
    if had_secret or not client.webhook_url:
        return []
    return [("Webhook secret", client.webhook_secret)]


def _rotate_client_secret(request: HttpRequest) -> Shown:
    client_id, client_secret = applications.rotate_client_secret(_client(request))
    return [("Client id", client_id), ("Client secret", client_secret)]


def _rotate_webhook_secret(request: HttpRequest) -> Shown:
    return [("Webhook secret", applications.rotate_webhook_secret(_client(request)))]


def _change_tier(request: HttpRequest) -> Shown:
    try:
        application = _application(request.POST.get("app_id", ""))
    except Refused as refused:
        raise Invalid("document_key: There is no such application.") from refused
    try:
        key = json.loads(request.POST.get("document_key") or "null")
    except (ValueError, RecursionError) as error:
        raise Invalid("document_key: The key is not JSON.") from error
    applications.change_document_key(application, key)
    return []


def _make_test_user(request: HttpRequest) -> Shown:
    user, password = accounts.create_user(accounts.Account())
    return [
        ("User id", user.subject),
        ("E-mail address", user.email),
        ("Password", password),
    ]


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
