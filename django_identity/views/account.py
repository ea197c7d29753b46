"""The person's own pages: account, download, disconnect."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

from asgiref.sync import sync_to_async
from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest, HttpResponseBase, StreamingHttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from django_identity import conf
from django_identity.backends import end_unlinked_session
from django_identity.lifecycle import arrival, erasure
from django_identity.telemetry import LogEvent, log
from django_identity.views.addresses import address_of, login_url
from django_identity.views.flow import (
    application_of,
    flow_view,
    signed_in_user,
)

DOWNLOAD_NAME = "my-identity.json"


@flow_view
@require_http_methods(["GET", "HEAD"])
def account(request: HttpRequest, alias: str = conf.DEFAULT_ALIAS) -> HttpResponseBase:
    """Show all data that this site stores about the person."""
    application = application_of(request, alias)
    user = signed_in_user(request)
    if user is None:
        return redirect(login_url(application, next_url=request.path))
    context = {
        "application": application,
        "dossier": erasure.dossier_of(user, application=application),
    }
    return render(request, "django_identity/account.html", context)


@flow_view
@require_http_methods(["GET", "HEAD"])
def download(request: HttpRequest, alias: str = conf.DEFAULT_ALIAS) -> HttpResponseBase:
    """All data that this site stores about the person, as a JSON file."""
    application = application_of(request, alias)
    user = signed_in_user(request)
    if user is None:
        return redirect(login_url(application, next_url=address_of("account", application)))
    pieces = erasure.export_of(user)
    return StreamingHttpResponse(
        _in_turn(pieces) if isinstance(request, ASGIRequest) else pieces,
        content_type="application/json",
        headers={"Content-Disposition": f'attachment; filename="{DOWNLOAD_NAME}"'},
    )


async def _in_turn(pieces: Iterator[str]) -> AsyncIterator[str]:
    """``pieces`` for ASGI, where Django would read a sync iterator to its end first."""
    following = sync_to_async(lambda: next(pieces, None))
    while (piece := await following()) is not None:
        yield piece


@flow_view
@require_http_methods(["GET", "HEAD", "POST"])
def disconnect(request: HttpRequest, alias: str = conf.DEFAULT_ALIAS) -> HttpResponseBase:
    """GET asks for confirmation. POST disconnects the identity and ends an identity session."""
    application = application_of(request, alias)
    user = signed_in_user(request)
    if user is None:
        return redirect(login_url(application, next_url=address_of("account", application)))
    context = {"application": application, "has_password": user.has_usable_password()}
    if request.method != "POST":
        return render(request, "django_identity/disconnect.html", context)
    if arrival.unlink(user, application=application):
        end_unlinked_session(request)
        log(LogEvent.DISCONNECTED, application=application.alias)
    return render(request, "django_identity/disconnected.html", context)
