"""The account page and what a person can withdraw there."""

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from django_identity.sandbox import claims, consents
from django_identity.sandbox.models import KycStatus
from django_identity.sandbox.pages.destinations import signed_in_user
from django_identity.sandbox.pages.wording import claim_title, described


@login_required
@require_safe
def account(request: HttpRequest) -> HttpResponse:
    """Show the profile, the verification, the claims and the consents."""
    user = signed_in_user(request)
    context = {
        "person": user,
        "verified": user.kyc_status == KycStatus.VERIFIED,
        "rejected": user.kyc_status == KycStatus.REJECTED,
        "provider": claims.KYC_VENDOR,
        "claims": [(claim, claim_title(claim.claim_type)) for claim in claims.listed(user)],
        "consents": [(consent, described(consent.scopes)) for consent in consents.granted(user)],
    }
    return render(request, "sandbox/account.html", context)


@login_required
@require_POST
def revoke_claim(request: HttpRequest, claim_type: str) -> HttpResponse:
    """Revoke one claim."""
    if claims.revoke(signed_in_user(request), claim_type):
        messages.success(request, _("The claim is revoked. Applications no longer receive it."))
    return redirect("account")


@login_required
@require_POST
def revoke_consent(request: HttpRequest, client_id: str) -> HttpResponse:
    """Withdraw an application's access."""
    if consents.revoke(signed_in_user(request), client_id):
        messages.success(request, _("Access is revoked. The application's tokens are void."))
    return redirect("account")
