"""What a person sees: sign-in, verification and the account, with what can be withdrawn there."""

from typing import cast

from django.contrib import messages
from django.contrib.auth import authenticate, login, logout
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render, resolve_url
from django.utils.http import url_has_allowed_host_and_scheme, urlencode
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import (
    require_http_methods,
    require_POST,
    require_safe,
)

from django_identity.sandbox import callers, claims, consents
from django_identity.sandbox.errors import Invalid
from django_identity.sandbox.models import Consent, User
from django_identity.sandbox.people import accounts, verification
from django_identity.sandbox.people.forms import BvnForm, SignInForm
from django_identity.sandbox.people.verification import Outcome

SHOWN = 5
_SKIPPED_FOR = "verification_skipped_for"


def signed_in_user(request: HttpRequest) -> User:
    """Return the person of a page that asks for sign-in."""
    return cast("User", request.user)


def next_address(request: HttpRequest) -> str:
    """Return the address the person came from, if it is one of ours; else nothing."""
    address = request.POST.get("next") or request.GET.get("next") or ""
    # Without the query, which leads nowhere else: Django refuses more than 2,048 characters.
    allowed = url_has_allowed_host_and_scheme(
        address.partition("?")[0],
        allowed_hosts={request.get_host()},
    )
    if not allowed:
        return ""
    return address


def _onward(request: HttpRequest) -> HttpResponse:
    """Send the person to where they were going, or to their account."""
    return redirect(next_address(request) or resolve_url("account"))


def _to_sign_in(next_one: str) -> HttpResponse:
    return redirect(resolve_url("sign_in") + "?" + urlencode({"next": next_one}))


@sensitive_post_parameters("password")
@require_http_methods(["GET", "HEAD", "POST"])
def sign_in(request: HttpRequest) -> HttpResponse:
    """Offer the cast; sign a person in and send them to where they were going."""
    if request.method == "GET" and request.user.is_authenticated:
        return _onward(request)
    is_operator = callers.is_operator(request)
    form = SignInForm(request.POST or None)
    if form.is_valid():
        email = form.cleaned_data["email"].lower()
        password = form.cleaned_data["password"]
        user = authenticate(request, username=email, password=password)
        # What all know is for this machine alone.
        if user is not None and (is_operator or password != accounts.PASSWORD):
            login(request, user)
            return _onward(request)
        message = "That e-mail address and password do not match an account."
        form.add_error(None, message)  # without saying which half is wrong

    context = {
        "form": form,
        "next": next_address(request),
        "is_operator": is_operator,
        "cast": accounts.offered(),
    }
    return render(request, "sandbox/sign_in.html", context)


@require_POST
@callers.operators_only
def continue_as(request: HttpRequest) -> HttpResponse:
    """Sign in as one of the cast, without a password."""
    user = accounts.offered().filter(subject=request.POST.get("person")).first()
    if user is not None:
        login(request, user)
        return _onward(request)
    messages.error(request, "That test person is gone. Choose another one.")
    return _to_sign_in(next_address(request))


@require_POST
def sign_out(request: HttpRequest) -> HttpResponse:
    """End the session; with ``next``, ask for another account on the way there."""
    destination = next_address(request)
    logout(request)
    if not destination:
        return redirect("sign_in")
    return _to_sign_in(destination)


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def verify(request: HttpRequest) -> HttpResponse:
    """Ask for a BVN and say what came of it; ``skip`` goes on without."""
    if "skip" in request.POST:
        request.session[_SKIPPED_FOR] = next_address(request)
        return _onward(request)
    user = signed_in_user(request)
    form = BvnForm(request.POST or None)
    outcome = None
    if form.is_valid():
        outcome = verification.verify(user, form.cleaned_data["bvn"])
        if outcome is Outcome.VERIFIED:
            messages.success(request, "Your identity is verified.")
            return _onward(request)
    context = {
        "form": form,
        "person": user,
        "next": next_address(request),
        "outcome": outcome,
    }
    status = 503 if outcome is Outcome.PROVIDER_UNAVAILABLE else 200
    return render(request, "sandbox/verify.html", context, status=status)


def was_skipped(request: HttpRequest, destination: str) -> bool:
    """Return whether the person chose to go on to ``destination`` without verification."""
    return request.session.get(_SKIPPED_FOR) == destination


@login_required
@require_POST
def prove_address(request: HttpRequest) -> HttpResponse:
    """Add proof of address: the sandbox takes the person's word for the document."""
    verification.prove_address(signed_in_user(request))
    messages.success(request, "Your proof of address is accepted.")
    return _onward(request)


@login_required
@require_safe
def account(request: HttpRequest) -> HttpResponse:
    """Show the profile, the verification, codes, notices, claims and consents."""
    user = signed_in_user(request)
    notices = user.notice_set.select_related("client")[:SHOWN]
    context = {
        "person": user,
        "codes": user.connectcode_set.select_related("used_by")[:SHOWN],
        "notices": [(notice, consents.described(notice.scopes)) for notice in notices],
        "claims": claims.listed(user),
        "consents": [
            (consent, consents.described(consent.scopes))
            for consent in consents.granted(user)
        ],
    }
    return render(request, "sandbox/account.html", context)


@login_required
@require_POST
def revoke_claim(request: HttpRequest, claim_type: str) -> HttpResponse:
    """Withdraw a claim."""
    if claims.revoke(signed_in_user(request), claim_type):
        messages.success(
            request,
            "The claim is revoked. Applications no longer receive it.",
        )
    return redirect("account")


@login_required
@require_POST
def issue_claim(request: HttpRequest, claim_type: str) -> HttpResponse:
    """Issue a claim again that was revoked."""
    try:
        claims.issue(signed_in_user(request), claim_type)
    except Invalid:
        messages.error(request, "Verify your identity first.")
    else:
        messages.success(request, "The claim is issued again.")
    return redirect("account")


@login_required
@require_POST
def revoke_consent(request: HttpRequest, client_id: str) -> HttpResponse:
    """Withdraw an application's access."""
    if consents.revoke(signed_in_user(request), client_id):
        messages.success(
            request,
            "Access is revoked. The application's tokens are void.",
        )
    return redirect("account")


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def delete(request: HttpRequest) -> HttpResponse:
    """Ask whether it is meant; then ask every application to delete the person's data."""
    user = signed_in_user(request)
    if request.method == "GET":
        ever_granted = (
            Consent.objects.filter(user=user).select_related("client").order_by("pk")
        )
        context = {
            "person": user,
            "consents": ever_granted,
        }
        return render(request, "sandbox/delete.html", context)
    consents.request_deletion(user)
    logout(request)
    messages.success(
        request,
        "Your account is closed. Every application was told to delete.",
    )
    return redirect("sign_in")
