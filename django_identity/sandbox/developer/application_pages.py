"""Pages of applications: registering, addresses, secrets, test users."""

import json
from dataclasses import dataclass, field
from uuid import UUID

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from django_identity.sandbox.developer import applications
from django_identity.sandbox.developer.forms import (
    NewApplicationForm,
    RedirectUrisForm,
    TrustedTierForm,
    WebhookForm,
)
from django_identity.sandbox.developer.session import developer_required
from django_identity.sandbox.models import Application, Client
from django_identity.sandbox.server import callers
from django_identity.sandbox.users import accounts


@dataclass(frozen=True, slots=True)
class Shown:
    """One value of a page that shows what is never shown again."""

    label: str | Promise
    value: str = field(repr=False)


@developer_required
@require_http_methods(["GET", "POST"])
def overview(request: HttpRequest) -> HttpResponse:
    """List the applications, and register one."""
    form = NewApplicationForm(request.POST or None)
    if form.is_valid():
        created = applications.register_application(
            form.cleaned_data["name"], form.cleaned_data["redirect_uris"]
        )
        shown = [
            Shown(_("Test client id"), created.test.client_id),
            Shown(_("Test client secret"), created.test.client_secret),
            Shown(_("Live client id"), created.live.client_id),
            Shown(_("Live client secret"), created.live.client_secret),
        ]
        return _show_once(request, created.application, shown)
    context = {
        "form": form,
        "applications": Application.objects.order_by("-pk"),
        "token": settings.SANDBOX_PORTAL_TOKEN,
        "api": f"{settings.SANDBOX_ORIGIN}/api/v1",
    }
    return render(request, "sandbox/portal/overview.html", context)


@developer_required
@require_safe
def application(request: HttpRequest, app_id: UUID) -> HttpResponse:
    """Show both credential sets of an application."""
    return _application_page(request, get_object_or_404(Application, app_id=app_id))


@developer_required
@require_POST
def change_redirect_uris(request: HttpRequest, client_id: str) -> HttpResponse:
    """Register other redirect addresses."""
    client = get_object_or_404(Client, client_id=client_id)
    form = RedirectUrisForm(request.POST, prefix=client.environment)
    if not form.is_valid():
        return _application_page(request, client.registered, form)
    applications.change_redirect_uris(
        Client.objects.filter(pk=client.pk), form.cleaned_data["redirect_uris"]
    )
    messages.success(request, _("The redirect addresses are saved."))
    return redirect("portal_application", app_id=client.registered.app_id)


@developer_required
@require_POST
def change_webhook(request: HttpRequest, client_id: str) -> HttpResponse:
    """Send events elsewhere; the first address comes with a secret."""
    client = get_object_or_404(Client, client_id=client_id)
    is_local = callers.is_local(request)
    form = WebhookForm(request.POST, prefix=client.environment, is_local=is_local)
    if not form.is_valid():
        return _application_page(request, client.registered, form)
    is_first = not client.webhook_secret
    applications.register_webhook(client, form.cleaned_data["url"], is_local=is_local)
    if is_first:
        shown = [Shown(_("Webhook secret"), client.webhook_secret)]
        return _show_once(request, client.registered, shown)
    messages.success(request, _("The webhook address is saved."))
    return redirect("portal_application", app_id=client.registered.app_id)


@developer_required
@require_POST
def rotate_client_secret(request: HttpRequest, client_id: str) -> HttpResponse:
    client = get_object_or_404(Client, client_id=client_id)
    issued = applications.rotate_client_secret(client)
    shown = [
        Shown(_("Client id"), issued.client_id),
        Shown(_("Client secret"), issued.client_secret),
    ]
    return _show_once(request, client.registered, shown)


@developer_required
@require_POST
def rotate_webhook_secret(request: HttpRequest, client_id: str) -> HttpResponse:
    """Replace the secret that signs events."""
    client = get_object_or_404(Client, client_id=client_id)
    shown = [Shown(_("Webhook secret"), applications.rotate_webhook_secret(client))]
    return _show_once(request, client.registered, shown)


@developer_required
@require_POST
def make_test_user(request: HttpRequest, app_id: UUID) -> HttpResponse:
    created = accounts.create_user()
    shown = [
        Shown(_("User id"), created.user.subject),
        Shown(_("E-mail address"), created.user.email),
        Shown(_("Password"), created.password),
    ]
    return _show_once(request, get_object_or_404(Application, app_id=app_id), shown)


@developer_required
@require_POST
def change_tier(request: HttpRequest, app_id: UUID) -> HttpResponse:
    """Approve an application for the trusted tier with its public key, or take that back."""
    changed = get_object_or_404(Application, app_id=app_id)
    form = TrustedTierForm(request.POST)
    if not form.is_valid():
        return _application_page(request, changed, form)
    if form.cleaned_data["document_key"]:
        applications.approve_as_trusted(changed, form.cleaned_data["document_key"])
        messages.success(request, _("The application is in the trusted tier."))
    else:
        applications.end_trusted_tier(changed)
        messages.success(request, _("The application is in the standard tier."))
    return redirect("portal_application", app_id=app_id)


def _application_page(
    request: HttpRequest,
    shown: Application,
    refused: RedirectUrisForm | WebhookForm | TrustedTierForm | None = None,
) -> HttpResponse:
    """Show an application; a form that was refused stands in its place with its errors."""
    clients = []
    for client in Client.objects.filter(registered=shown).order_by("-environment"):
        prefix = client.environment
        addresses = {"redirect_uris": "\n".join(client.redirect_uris.split())}
        webhook = {"url": client.webhook_url}
        forms = {
            RedirectUrisForm: RedirectUrisForm(initial=addresses, prefix=prefix),
            WebhookForm: WebhookForm(initial=webhook, prefix=prefix, is_local=False),
        }
        if refused is not None and refused.prefix == prefix:
            forms[type(refused)] = refused
        clients.append((client, forms[RedirectUrisForm], forms[WebhookForm]))
    key = json.dumps(shown.document_key) if shown.is_trusted else ""
    tier = TrustedTierForm(initial={"document_key": key})
    if isinstance(refused, TrustedTierForm):
        tier = refused
    context = {"application": shown, "clients": clients, "tier": tier}
    return render(request, "sandbox/portal/application.html", context)


def _show_once(request: HttpRequest, shown: Application, values: list[Shown]) -> HttpResponse:
    """Show what was made; it is kept in no session, so leaving the page loses it."""
    context = {"application": shown, "values": values}
    return render(request, "sandbox/portal/shown_once.html", context)
