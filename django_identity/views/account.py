"""The person's own pages: account, download, disconnect."""

from collections.abc import AsyncIterator, Iterator

from asgiref.sync import sync_to_async
from django.conf import settings
from django.contrib import messages
from django.contrib.auth import logout
from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest, HttpResponseBase, StreamingHttpResponse
from django.shortcuts import redirect
from django.urls import get_script_prefix
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from django_identity import conf, policy
from django_identity.backends import end_unlinked_session
from django_identity.exceptions import StorageUnavailable
from django_identity.lifecycle import arrival, erasure, operators, standing
from django_identity.telemetry import LogEvent, log
from django_identity.texts import advice, labels
from django_identity.views import flow
from django_identity.views.addresses import account_url, address_of, login_url, path_of
from django_identity.views.flow import flow_view
from django_identity.views.pages import page

DOWNLOAD_NAME = "my-identity.json"
PAGE_NAME = "my-identity.html"


@flow_view
@require_http_methods(["GET", "HEAD"])
def account(request: HttpRequest, alias: str = conf.DEFAULT_ALIAS) -> HttpResponseBase:
    """Show all data that this site stores about the person."""
    application = flow.application_of(request, alias)
    user = flow.signed_in_user(request)
    if user is None:
        return redirect(login_url(application, next_url=path_of(request)))
    dossier = erasure.dossier_of(user, application=application)
    shortfall = standing.shortfall_of_account(
        dossier.identity,
        needs_reauthorization=dossier.needs_reauthorization,
        permission_ends_at=dossier.permission_ends_at,
    )
    sessions = erasure.sessions_of(user, current=request.session)
    context = {
        "dossier": dossier,
        "shortfall": shortfall,
        "advice": advice.advice_on(shortfall, request, application),
        "activity": operators.activity_of(dossier.identity) if dossier.identity else (),
        "sessions": sessions,
        "can_sign_out_everywhere": sessions is not None or erasure.can_end_sessions(),
        "may_erase": policy.load(application.policy).people_may_erase,
    }
    return page(request, application, "django_identity/account.html", context)


@flow_view
@require_http_methods(["GET", "HEAD", "POST"])
def sign_out(request: HttpRequest, alias: str = conf.DEFAULT_ALIAS) -> HttpResponseBase:
    """POST ends the browser's session; with ``session`` another one, with ``everywhere`` all.

    GET leads to the account page, which has the buttons.
    """
    application = flow.application_of(request, alias)
    user = flow.signed_in_user(request)
    account_page = redirect(address_of("account", application))
    if request.method != "POST":
        return account_page
    if "session" in request.POST:
        if user is not None:
            erasure.end_session(user.pk, request.POST["session"])
            messages.success(request, _("That browser is signed out."), fail_silently=True)
        return account_page
    if "everywhere" in request.POST and user is not None:
        erasure.end_all_sessions(user.pk)
    logout(request)
    messages.success(request, _("You are signed out."), fail_silently=True)
    return redirect(settings.LOGOUT_REDIRECT_URL or get_script_prefix())


@flow_view
@require_http_methods(["GET", "HEAD"])
def download(request: HttpRequest, alias: str = conf.DEFAULT_ALIAS) -> HttpResponseBase:
    """All data that this site stores about the person, as a JSON file.

    With ``?as=page`` the newest records as a page to keep.
    """
    application = flow.application_of(request, alias)
    user = flow.signed_in_user(request)
    if user is None:
        return redirect(login_url(application, next_url=address_of("account", application)))
    if request.GET.get("as") == "page":
        context = {"dossier": erasure.dossier_of(user, application=application)}
        response = page(request, application, "django_identity/download.html", context)
        response["Content-Disposition"] = f'attachment; filename="{PAGE_NAME}"'
        return response
    pieces = erasure.export_of(user)
    return StreamingHttpResponse(
        _in_turn(pieces) if isinstance(request, ASGIRequest) else pieces,
        content_type="application/json",
        headers={"Content-Disposition": f'attachment; filename="{DOWNLOAD_NAME}"'},
    )


@flow_view
@require_http_methods(["GET", "HEAD", "POST"])
def erase(request: HttpRequest, alias: str = conf.DEFAULT_ALIAS) -> HttpResponseBase:
    """GET says what goes. POST erases the person, and shows the receipt."""
    application = flow.application_of(request, alias)
    user = flow.signed_in_user(request)
    identity = arrival.identity_of(user, application=application) if user else None
    if identity is None or not policy.load(application.policy).people_may_erase:
        return redirect(address_of("account", application))
    if request.method != "POST":
        preview = operators.erasure_preview(identity)
        return page(request, application, "django_identity/erase.html", {"preview": preview})
    try:
        receipt = operators.erase(identity)
    except StorageUnavailable as error:
        return flow.failure(request, LogEvent.ERASURE_FAILED, error, application)
    if not receipt.account_kept:
        logout(request)
    context = {"receipt": receipt, "counts": labels.name_counts(receipt.counts)}
    return page(request, application, "django_identity/erased.html", context)


async def _in_turn(pieces: Iterator[str]) -> AsyncIterator[str]:
    """``pieces`` for ASGI, where Django would read a sync iterator to its end first."""
    following = sync_to_async(lambda: next(pieces, None))
    while (piece := await following()) is not None:
        yield piece


@flow_view
@require_http_methods(["GET", "HEAD", "POST"])
def disconnect(request: HttpRequest, alias: str = conf.DEFAULT_ALIAS) -> HttpResponseBase:
    """GET asks for confirmation. POST disconnects the identity and ends an identity session."""
    user = flow.signed_in_user(request)
    application = flow.application_to_leave(request, alias, user=user)
    if user is None:
        return redirect(login_url(application, next_url=address_of("account", application)))
    context = {
        "has_password": user.has_usable_password(),
        "parting": arrival.parting(user, application=application),
        "account_url": account_url(application),
    }
    if request.method != "POST":
        return page(request, application, "django_identity/disconnect.html", context)
    if arrival.unlink(user, application=application):
        end_unlinked_session(request)
        log(LogEvent.DISCONNECTED, application=application.alias)
    return page(request, application, "django_identity/disconnected.html", context)
