"""Identity verification with a test bank verification number."""

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from django_identity.sandbox.models import KycStatus
from django_identity.sandbox.pages.forms import AddressForm, BvnForm
from django_identity.sandbox.pages.navigation import next_address, next_or_account, signed_in_user
from django_identity.sandbox.users import verification
from django_identity.sandbox.users.verification import Outcome

_SKIPPED_FOR = "verification_skipped_for"


@login_required
@require_http_methods(["GET", "POST"])
def verify(request: HttpRequest) -> HttpResponse:
    """Ask for a BVN and say what came of it; ``skip`` goes on without."""
    if "skip" in request.POST:
        request.session[_SKIPPED_FOR] = next_address(request)
        return redirect(next_or_account(request))
    user, form = signed_in_user(request), BvnForm(request.POST or None)
    outcome = None
    if form.is_valid():
        outcome = verification.verify(user, form.cleaned_data["bvn"])
        if outcome is Outcome.VERIFIED:
            messages.success(request, _("Your identity is verified."))
            return redirect(next_or_account(request))
    context = {
        "form": form,
        "address_form": AddressForm(),
        "person": user,
        "verified": user.kyc_status == KycStatus.VERIFIED,
        "next": next_address(request),
        "problem": _problem(outcome) if outcome else None,
    }
    status = 503 if outcome is Outcome.PROVIDER_UNAVAILABLE else 200
    return render(request, "sandbox/verify.html", context, status=status)


@login_required
@require_POST
def prove_address(request: HttpRequest) -> HttpResponse:
    """Add proof of address."""
    if AddressForm(request.POST).is_valid():
        verification.prove_address(signed_in_user(request))
        messages.success(request, _("Your proof of address is accepted."))
        return redirect(next_or_account(request))
    messages.error(request, _("Choose one of the documents."))
    return redirect("verify")


def was_skipped(request: HttpRequest, destination: str) -> bool:
    """Return whether the person chose to go on to ``destination`` without verification."""
    return request.session.get(_SKIPPED_FOR) == destination


def _problem(outcome: Outcome) -> tuple[str, str]:
    """Return the headline of a failed verification and what to do about it."""
    match outcome:
        case Outcome.PROVIDER_UNAVAILABLE:
            return (
                _("The verification provider is not available"),
                _("Nothing has changed. Wait a moment, then try again."),
            )
        case Outcome.NAME_MISMATCH:
            return (
                _("Rejected: the name does not match"),
                _("The name on this BVN differs from the name on your account."),
            )
        case _:
            return (
                _("Rejected: the number was not found"),
                _("No record has this BVN. Check the digits and try again."),
            )
