"""The person's own pages: account, download, disconnect."""

from typing import Any

from django.conf import settings
from django.contrib.auth import logout
from django.contrib.auth.models import AbstractBaseUser as Person
from django.http import HttpRequest, HttpResponseBase, JsonResponse
from django.shortcuts import redirect, resolve_url
from django.urls import get_script_prefix
from django.utils.translation import gettext as _

from django_identity import database, policy
from django_identity.exceptions import NoOtherWayIn
from django_identity.lifecycle.ground import sessions, withdrawal
from django_identity.lifecycle.leaving import disconnecting, dossier, erasure
from django_identity.lifecycle.operators import timeline
from django_identity.lifecycle.standing import standing
from django_identity.logs import LogEvent
from django_identity.texts import advice
from django_identity.web import answers, flow
from django_identity.web.pages import address_of, page, tell
from django_identity.web.sessions import end_disconnected_session


@flow.own_page("GET", "HEAD")
def account(request: HttpRequest, user: Person) -> HttpResponseBase:
    """Show all data that this site stores about the person."""
    records = dossier.dossier_of(user)
    person = standing.standing_of(user)
    shortfall = person.account_shortfall(records.grant)
    context: dict[str, Any] = {
        "dossier": records,
        "shortfall": shortfall,
        "advice": advice.advice_on(shortfall, request),
        "may_erase": erasure.may_erase_themselves(user),
        "waits_for_erasure": withdrawal.waits_for_erasure(user.pk),
    }
    if records.identity is not None:
        context["activity"] = timeline.activity_of(records.identity)
    return page(request, "django_identity/account.html", context)


@flow.open_page("GET", "HEAD", "POST")
def sign_out(request: HttpRequest) -> HttpResponseBase:
    """POST ends the browser's session; with ``everywhere`` all sessions of the identity sign-in.

    GET leads to the account page, which has the buttons.
    """
    if request.method != "POST":
        return redirect(address_of("account"))
    user = flow.signed_in_user(request)
    if "everywhere" in request.POST and user is not None:
        sessions.sign_out_everywhere(user)
    logout(request)
    tell(request, _("You are signed out."))
    return redirect(settings.LOGOUT_REDIRECT_URL or get_script_prefix())


@flow.own_page("GET", "HEAD")
def download(request: HttpRequest, user: Person) -> HttpResponseBase:
    """All data that this site stores about the person, as a JSON file for browsers to show."""
    return JsonResponse(
        dossier.export_of(user),
        json_dumps_params={"indent": 1},
        headers={"Content-Disposition": 'inline; filename="my-identity.json"'},
    )


@flow.own_page("GET", "HEAD", "POST", failed=LogEvent.ERASURE_FAILED)
def erase(request: HttpRequest, user: Person) -> HttpResponseBase:
    """GET says what goes. POST erases the person, and leads to the receipt."""
    if not erasure.may_erase_themselves(user):
        return redirect(address_of("account"))
    if request.method != "POST":
        context = {"forecast": erasure.forecast(user)}
        return page(request, "django_identity/erase.html", context)
    receipt = erasure.erase_account(user)
    # A receiver of the sign-out or a middleware may save the request's user, all columns of it.
    database.read_again(user)
    if not receipt.account_kept:
        logout(request)
    return answers.keep_receipt(request, receipt.pk)


@flow.own_page("GET", "HEAD", "POST", failed=LogEvent.DISCONNECT_FAILED)
def disconnect(request: HttpRequest, user: Person) -> HttpResponseBase:
    """GET asks for confirmation. POST disconnects the identity and ends its sessions.

    If nothing is linked, GET leads to the account page, which says so.
    """
    if request.method == "POST":
        try:
            was_linked = disconnecting.disconnect_user(user)
        except NoOtherWayIn:
            # The page says so.
            return redirect(address_of("disconnect"))
        if was_linked:
            end_disconnected_session(request)
        return page(request, "django_identity/disconnected.html")
    parting = disconnecting.parting(user)
    if parting is None:
        return redirect(address_of("account"))
    context = {
        "parting": parting,
        "may_erase": erasure.may_erase_themselves(user),
    }
    address = policy.of_site().set_password_url
    if address:
        context["set_password_url"] = resolve_url(address)
    return page(request, "django_identity/disconnect.html", context)
