"""POST /developer/apps/:appId/rotate-secret and POST /developer/test-users."""

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt

from django_identity.sandbox.developer import applications
from django_identity.sandbox.models import Application, Client, Environment
from django_identity.sandbox.server import callers, envelope, json_body
from django_identity.sandbox.users import accounts

DeveloperEndpoint = Callable[..., HttpResponse]


def developer_endpoint(endpoint: DeveloperEndpoint) -> DeveloperEndpoint:
    """Guard an endpoint: POST, the developer portal session token, a JSON object as body."""

    @csrf_exempt
    @wraps(endpoint)
    def view(request: HttpRequest, **parts: str) -> HttpResponse:
        if request.method != "POST":
            return envelope.method_not_allowed("POST")
        if not callers.has_token(request):
            refusal = envelope.error(
                401, envelope.UNAUTHORIZED, "Send the developer portal session token as Bearer."
            )
            refusal["WWW-Authenticate"] = 'Bearer realm="developer"'
            return refusal
        members = json_body.members_of(request)
        if members is None:
            return _invalid("The body is not a JSON object.")
        return endpoint(members, **parts)

    return view


@developer_endpoint
def rotate_secret(members: Mapping[str, Any], app_id: str) -> HttpResponse:
    """Issue a new client secret for one mode; the old one is void at once."""
    application = _application(app_id)
    if application is None:
        return _unknown_application()
    mode = members.get("mode")
    if mode not in Environment.values:
        return _invalid("mode is test or live.")
    issued = applications.rotate_client_secret(
        Client.objects.get(registered=application, environment=mode)
    )
    return envelope.success(
        {"mode": mode, "clientId": issued.client_id, "clientSecret": issued.client_secret}
    )


@developer_endpoint
def test_users(members: Mapping[str, Any]) -> HttpResponse:
    """Make a sandbox user, whose password is shown this once."""
    app_id = members.get("appId")
    if not isinstance(app_id, str):
        return _invalid("appId must be a string.")
    if _application(app_id) is None:
        return _unknown_application()
    created = accounts.create_user()
    return envelope.success(
        {"userId": created.user.subject, "email": created.user.email, "password": created.password},
        status=201,
    )


def _application(app_id: str) -> Application | None:
    try:
        return Application.objects.filter(app_id=UUID(app_id)).first()
    except ValueError:
        return None


def _invalid(message: str) -> HttpResponse:
    """Refuse a body that cannot be used."""
    return envelope.error(400, envelope.INVALID_REQUEST, message)


def _unknown_application() -> HttpResponse:
    """Refuse an ``appId`` that names nothing."""
    return envelope.error(404, envelope.NOT_FOUND, "There is no such application.")
