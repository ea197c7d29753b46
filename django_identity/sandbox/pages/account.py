"""The account page and what a person can withdraw there."""

from django.contrib import messages
from django.contrib.auth import logout
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from django_identity.sandbox.claims import claims
from django_identity.sandbox.connect import codes
from django_identity.sandbox.consents import consents, notices
from django_identity.sandbox.consents.scopes import described
from django_identity.sandbox.models import KycStatus
from django_identity.sandbox.pages.connect import shown
from django_identity.sandbox.pages.navigation import signed_in_user
from django_identity.sandbox.pages.wording import claim_title
from django_identity.sandbox.users import deletion
from django_identity.sandbox.users.cast import country_name

SHOWN = 5


@login_required
@require_safe
def account(request: HttpRequest) -> HttpResponse:
    """Show the profile, the verification, codes, notices, claims and consents."""
    user = signed_in_user(request)
    context = {
        "person": user,
        "verified": user.kyc_status == KycStatus.VERIFIED,
        "rejected": user.kyc_status == KycStatus.REJECTED,
        "country": country_name(user.country),
        "provider": claims.KYC_VENDOR,
        "codes": [shown(code) for code in codes.listed(user)[:SHOWN]],
        "notices": [(each, described(each.scopes)) for each in notices.listed(user)[:SHOWN]],
        "claims": [(claim, claim_title(claim.claim_type)) for claim in claims.listed(user)],
        "consents": [(consent, described(consent.scopes)) for consent in consents.granted(user)],
    }
    return render(request, "sandbox/account.html", context)


@login_required
@require_POST
def revoke_claim(request: HttpRequest, claim_type: str) -> HttpResponse:
    if claims.revoke(signed_in_user(request), claim_type):
        messages.success(request, _("The claim is revoked. Applications no longer receive it."))
    return redirect("account")


@login_required
@require_POST
def issue_claim(request: HttpRequest, claim_type: str) -> HttpResponse:
    """Issue a claim again that was revoked."""
    try:
        claims.issue(signed_in_user(request), claim_type)
    except claims.NotProven:
        messages.error(request, _("Verify your identity first."))
    else:
        messages.success(request, _("The claim is issued again."))
    return redirect("account")


@login_required
@require_POST
def revoke_consent(request: HttpRequest, client_id: str) -> HttpResponse:
    """Withdraw an application's access."""
    if consents.revoke(signed_in_user(request), client_id):
        messages.success(request, _("Access is revoked. The application's tokens are void."))
    return redirect("account")


@login_required
@require_http_methods(["GET", "POST"])
def delete(request: HttpRequest) -> HttpResponse:
    """Ask whether it is meant; then ask every application to delete the person's data."""
    user = signed_in_user(request)
    if request.method == "GET":
        context = {"person": user, "applications": consents.ever_granted(user)}
        return render(request, "sandbox/delete.html", context)
    deletion.request(user)
    logout(request)
    messages.success(request, _("Your account is closed. Every application was told to delete."))
    return redirect("sign_in")
